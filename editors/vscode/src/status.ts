/** The status item: indexing progress, from the daemon's notifications. */

import * as vscode from "vscode";

import type { Client } from "./client";
import type { Projects } from "./projects";

/** The status of a project that the daemon sends to subscribers. */
interface State {
  root: string;
  stage: string;
  share: number;
  files: number;
  detail: string;
}

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("flashgrep", vscode.StatusBarAlignment.Right, 0);
  private readonly states = new Map<string, State>();
  /** The session in which each client has subscribed; subscriptions end with it. */
  private readonly sessions = new Map<Client, number>();
  private readonly listening: vscode.Disposable;

  constructor(projects: Projects) {
    this.item.name = "flashgrep";
    this.item.command = "flashgrep.grep";
    this.listening = projects.onDidAsk((clients) => void this.follow(clients));
  }

  /** Subscribe to the projects of these clients, unless the current connection has. */
  async follow(clients: readonly Client[]): Promise<void> {
    for (const client of clients.filter((one) => this.sessions.get(one) !== one.session)) {
      this.sessions.set(client, client.session);
      client.on("status", (state) => this.take(client, state as State));
      try {
        this.take(client, await client.request<State>("$/subscribe", {}));
      } catch (error) {
        this.item.text = "$(warning) flashgrep";
        this.item.tooltip = error instanceof Error ? error.message : String(error);
        this.item.show();
      }
    }
  }

  private take(client: Client, state: State): void {
    this.states.set(client.root, state);
    const all = [...this.states.values()];
    const busy = all.filter((one) => one.share < 1);
    const files = all.reduce((sum, one) => sum + one.files, 0);
    const share = Math.floor(Math.min(...busy.map((one) => one.share)) * 100);
    this.item.text = busy.length > 0 ? `$(sync~spin) flashgrep ${share} %` : "$(search) flashgrep";
    const details = all.map((one) => one.detail).filter(Boolean);
    this.item.tooltip = [`${files} files`, ...busy.map((one) => one.stage), ...details].join(", ");
    this.item.show();
  }

  dispose(): void {
    this.listening.dispose();
    this.item.dispose();
  }
}
