/** The search view: a form that searches at every keystroke, and the results as a tree of files and lines. */

import { randomBytes } from "node:crypto";

import * as vscode from "vscode";

import type { Projects } from "./projects";
import { settings } from "./projects";
import { type Found, Live, MOST_FILES, type Plan, planReplacing, type Question, type Results } from "./search";

/** The message that the form sends at each keystroke. */
interface Form extends Omit<Question, "limit" | "include" | "exclude"> {
  include: string;
  exclude: string;
  replacement: string;
}

type Node = { file: string; root: string; found: Found[] } | Found;

export class SearchView implements vscode.WebviewViewProvider, vscode.TreeDataProvider<Node> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly live = new Live();
  private form: Form | undefined;
  private files: Node[] = [];
  private readonly tree: vscode.TreeView<Node>;

  constructor(
    private readonly projects: Projects,
    context: vscode.ExtensionContext,
  ) {
    this.tree = vscode.window.createTreeView("flashgrep.results", { treeDataProvider: this });
    context.subscriptions.push(
      this.tree,
      vscode.window.registerWebviewViewProvider("flashgrep.form", this, {
        webviewOptions: { retainContextWhenHidden: true },
      }),
    );
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    view.webview.options = { enableScripts: true, localResourceRoots: [] };
    view.webview.html = formPage(randomBytes(16).toString("hex"));
    view.webview.onDidReceiveMessage((form: Form) => void this.ask(form));
  }

  async ask(form: Form): Promise<void> {
    this.form = form;
    try {
      const results = await this.live.ask(() => this.projects.all(), question(form));
      if (results) {
        this.show(results);
      }
    } catch (error) {
      this.files = [];
      this.tree.message = error instanceof Error ? error.message : String(error);
      this.changed.fire(undefined);
    }
  }

  private show(results: Results): void {
    const files = new Map<string, { file: string; root: string; found: Found[] }>();
    for (const found of results.found) {
      const key = `${found.root}\0${found.path}`;
      const known = files.get(key) ?? { file: found.path, root: found.root, found: [] };
      known.found.push(found);
      files.set(key, known);
    }
    this.files = [...files.values()];
    const count = `${results.found.length}${results.more ? " or more" : ""} in ${files.size} files`;
    this.tree.message = [results.found.length > 0 ? count : "", results.caveat].filter(Boolean).join("; ") || undefined;
    this.changed.fire(undefined);
  }

  getChildren(node?: Node): Node[] {
    return node === undefined ? this.files : "file" in node ? node.found : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ("file" in node) {
      const item = new vscode.TreeItem(
        vscode.Uri.joinPath(vscode.Uri.file(node.root), node.file),
        vscode.TreeItemCollapsibleState.Expanded,
      );
      item.description = `${node.file}  ${node.found.length}`;
      item.iconPath = vscode.ThemeIcon.File;
      return item;
    }
    const text = node.text.trimStart();
    const dropped = node.text.length - text.length;
    const highlights = node.spans
      .map(([start, end]): [number, number] => [Math.max(0, start - dropped), end - dropped])
      .filter(([start, end]) => end > start);
    const item = new vscode.TreeItem({ label: text || node.path, highlights });
    item.description = `${node.line + 1}${node.detail && `  ${node.detail}`}`;
    item.command = { command: "flashgrep.show", title: "Show", arguments: [node] };
    return item;
  }

  /** Show the diff of a replacement, and write it if the user confirms. */
  async replaceAll(): Promise<void> {
    const form = this.form;
    if (!form?.text || form.how !== "text") {
      void vscode.window.showInformationMessage("flashgrep: search for text first, not for a regular expression or by meaning.");
      return;
    }
    for (const client of this.projects.all()) {
      try {
        await this.replaceIn(await planReplacing(client, question(form), form.replacement), client.root);
      } catch (error) {
        void vscode.window.showWarningMessage(`flashgrep: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    await this.ask(form);
  }

  private async replaceIn(plan: Plan, root: string): Promise<void> {
    const paths = plan.files.map((file) => vscode.Uri.joinPath(vscode.Uri.file(root), file).fsPath);
    const unsaved = vscode.workspace.textDocuments.find((open) => open.isDirty && paths.includes(open.uri.fsPath));
    if (unsaved) {
      throw new Error(`${unsaved.uri.fsPath} has unsaved changes; save it first`);
    }
    const shown = await vscode.workspace.openTextDocument({ language: "diff", content: plan.diff });
    await vscode.window.showTextDocument(shown, { preview: true });
    const files = new Set(plan.files).size;
    const answer = await vscode.window.showWarningMessage(
      `Write these changes to ${files} ${files === 1 ? "file" : "files"}?`,
      { modal: true, detail: `All files or none; at most ${MOST_FILES} files.` },
      "Write",
    );
    if (answer === "Write") {
      await plan.apply();
    }
  }
}

function question(form: Form): Question {
  const split = (globs: string) => globs.split(",").map((glob) => glob.trim()).filter(Boolean);
  const limit = settings().get("limit", 500);
  return { ...form, include: split(form.include), exclude: split(form.exclude), limit };
}

function formPage(nonce: string): string {
  return `<!DOCTYPE html><html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<style nonce="${nonce}">
body { padding: 4px 12px; }
input[type=text], select { width: 100%; box-sizing: border-box; margin: 2px 0; padding: 4px; font: inherit;
  color: var(--vscode-input-foreground); background: var(--vscode-input-background);
  border: 1px solid var(--vscode-input-border, transparent); }
input:focus { outline: 1px solid var(--vscode-focusBorder); }
label { margin-right: 8px; white-space: nowrap; }
</style></head><body><form id="form">
<input type="text" name="text" placeholder="Search" aria-label="Search" autofocus>
<input type="text" name="replacement" placeholder="Replace" aria-label="Replace">
<select name="how" aria-label="How"><option value="text">Text</option><option value="regex">Expression</option>
<option value="meaning">By meaning</option></select>
<label><input type="checkbox" name="matchCase"> Match case</label><label><input type="checkbox" name="word"> Word</label>
<input type="text" name="include" placeholder="Files to include: *.ts, src/**" aria-label="Files to include">
<input type="text" name="exclude" placeholder="Files to exclude" aria-label="Files to exclude">
</form><script nonce="${nonce}">
const host = acquireVsCodeApi(), form = document.getElementById("form");
const fields = [...form.elements];
const state = host.getState() || {};
for (const field of fields) {
  if (field.name in state) field[field.type === "checkbox" ? "checked" : "value"] = state[field.name];
}
function tell() {
  const told = {};
  for (const field of fields) told[field.name] = field.type === "checkbox" ? field.checked : field.value;
  host.setState(told);
  host.postMessage(told);
}
form.addEventListener("input", tell);
form.addEventListener("submit", (event) => { event.preventDefault(); tell(); });
</script></body></html>`;
}
