/** Live grep in a quick pick: every keystroke searches, and the selected result is previewed. */

import * as vscode from "vscode";

import type { Projects } from "./projects";
import { settings } from "./projects";
import { type Found, Live, type Question } from "./search";

interface Item extends vscode.QuickPickItem {
  found?: Found;
}

const MOST_SHOWN = 200;

/** Go to a location; `preview`: keep the focus. */
export async function show(found: Found, preview = false): Promise<void> {
  const first = found.spans[0] ?? [0, 0];
  const start = new vscode.Position(found.line, found.column);
  const end = start.translate(0, first[1] - first[0]);
  const uri = vscode.Uri.joinPath(vscode.Uri.file(found.root), found.path);
  const range = new vscode.Range(start, end);
  await vscode.window.showTextDocument(uri, { selection: range, preview: true, preserveFocus: preview });
}

export function openLiveGrep(projects: Projects, how: Question["how"]): void {
  const picker = vscode.window.createQuickPick<Item>();
  const live = new Live();
  picker.placeholder = how === "meaning" ? "What does the code do?" : "Text to find";
  picker.matchOnDescription = false;
  picker.onDidChangeValue(async (text) => {
    picker.busy = true;
    const limit = Math.min(MOST_SHOWN, settings().get("limit", MOST_SHOWN));
    const question = { text, how, matchCase: false, word: false, include: [], exclude: [], limit };
    try {
      const results = await live.ask(() => projects.all(), question);
      if (results) {
        picker.items = results.found.map((found) => ({
          label: found.text.trim() || found.path,
          description: `${found.path}:${found.line + 1}${found.detail && `  ${found.detail}`}`,
          alwaysShow: true,
          found,
        }));
        picker.title = results.caveat || undefined;
        picker.busy = false;
      }
    } catch (error) {
      picker.items = [{ label: error instanceof Error ? error.message : String(error), alwaysShow: true }];
      picker.busy = false;
    }
  });
  picker.onDidChangeActive(([item]) => item?.found && void show(item.found, true));
  picker.onDidAccept(() => {
    const found = picker.activeItems[0]?.found;
    picker.hide();
    if (found) {
      void show(found);
    }
  });
  picker.onDidHide(() => {
    live.stop();
    picker.dispose();
  });
  picker.show();
}
