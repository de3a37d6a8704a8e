/** Entry point of the extension: its contributions to VS Code, and when they are activated. */

import { existsSync } from "node:fs";
import { join } from "node:path";

import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

import { command, Projects, settings } from "./projects";
import { openLiveGrep, show } from "./quickPick";
import type { Found } from "./search";
import { SearchView } from "./searchView";
import { Status } from "./status";

let languageClient: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const projects = new Projects();
  const view = new SearchView(projects, context);
  const status = new Status(projects);
  const register = (name: string, run: (...given: never[]) => unknown) =>
    vscode.commands.registerCommand(`flashgrep.${name}`, run);
  context.subscriptions.push(
    projects,
    status,
    register("grep", () => openLiveGrep(projects, "text")),
    register("meaning", () => openLiveGrep(projects, "meaning")),
    register("replaceAll", () => view.replaceAll()),
    register("show", (found: Found) => show(found)),
    register("restart", async () => {
      projects.dispose();
      await languageClient?.restart();
      projects.all();
    }),
  );
  // Any other folder becomes a project, and is indexed, when it is first searched.
  const isProject = (folder: vscode.WorkspaceFolder) =>
    [".git", ".flashgrep"].some((marker) => existsSync(join(folder.uri.fsPath, marker)));
  if (vscode.workspace.workspaceFolders?.every(isProject)) {
    projects.all();
    if (settings().get("languageServer", true)) {
      await startLanguageClient();
    }
  }
}

export async function deactivate(): Promise<void> {
  await languageClient?.stop();
}

/** Start `flashgrep lsp` for symbols, definitions, references and call hierarchies. */
async function startLanguageClient(): Promise<void> {
  const [program = "flashgrep", ...rest] = command();
  languageClient = new LanguageClient(
    "flashgrep",
    "flashgrep",
    { command: program, args: [...rest, "lsp"] },
    { documentSelector: [{ scheme: "file" }] },
  );
  try {
    await languageClient.start();
  } catch (error) {
    void vscode.window.showWarningMessage(`flashgrep lsp: ${error instanceof Error ? error.message : String(error)}`);
  }
}
