/** The connections of a window: one per workspace folder. */

import * as vscode from "vscode";

import { Client } from "./client";
import { Overlay } from "./overlay";

export function settings(): vscode.WorkspaceConfiguration {
  return vscode.workspace.getConfiguration("flashgrep");
}

export function command(): string[] {
  return settings().get<string[]>("command", ["flashgrep"]);
}

export class Projects implements vscode.Disposable {
  private readonly clients = new Map<string, { client: Client; overlay: Overlay }>();
  private readonly asked = new vscode.EventEmitter<Client[]>();
  /** Fires with the clients before requests are sent to them. */
  readonly onDidAsk = this.asked.event;

  /** Return the clients of all folders, after sending unsaved text to them. */
  all(): Client[] {
    const roots = (vscode.workspace.workspaceFolders ?? [])
      .filter((folder) => folder.uri.scheme === "file")
      .map((folder) => folder.uri.fsPath);
    for (const root of [...this.clients.keys()].filter((known) => !roots.includes(known))) {
      void this.clients.get(root)?.client.close();
      this.clients.delete(root);
    }
    const open = settings().get("unsaved", true) ? openFiles() : [];
    const clients = roots.map((root) => {
      let known = this.clients.get(root);
      if (!known) {
        const client = new Client(root, command());
        known = { client, overlay: new Overlay(client) };
        this.clients.set(root, known);
      }
      known.overlay.send(open);
      return known.client;
    });
    this.asked.fire(clients);
    return clients;
  }

  /** Close the connection; the next request reconnects. */
  dispose(): void {
    for (const { client } of this.clients.values()) {
      void client.close();
    }
    this.clients.clear();
  }
}

function openFiles() {
  return vscode.workspace.textDocuments
    .filter((document) => document.uri.scheme === "file")
    .map((document) => ({
      path: document.uri.fsPath,
      version: document.version,
      isDirty: document.isDirty,
      getText: () => document.getText(),
    }));
}
