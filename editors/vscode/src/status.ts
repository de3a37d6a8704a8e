/** The status item: how far indexing is, while it is under way. */

import * as vscode from "vscode";

import { AnswerError } from "./client";
import type { Projects } from "./projects";

interface Stats {
  stage: string;
  total_files: number;
  indexing: { share: number; eta_seconds: number | null };
  problem: string;
}

const LOOK_MILLISECONDS = 1000;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("flashgrep", vscode.StatusBarAlignment.Right, 0);
  private timer: NodeJS.Timeout | undefined;
  private readonly listening: vscode.Disposable;

  constructor(private readonly projects: Projects) {
    this.item.name = "flashgrep";
    this.item.command = "flashgrep.grep";
    this.listening = vscode.workspace.onDidChangeWorkspaceFolders(() => void this.look());
  }

  /** Ask how far the index is, and again until it is done. */
  async look(): Promise<void> {
    clearTimeout(this.timer);
    const clients = this.projects.all();
    try {
      const stats = await Promise.all(clients.map((client) => client.request<Stats>("stats", {})));
      const busy = stats.filter((one) => one.stage !== "ready" && one.stage !== "failed");
      const files = stats.reduce((sum, one) => sum + one.total_files, 0);
      const problem = stats.map((one) => one.problem).filter(Boolean).join("; ");
      const share = Math.min(...busy.map((one) => one.indexing.share));
      this.item.text = busy.length > 0 ? `$(sync~spin) flashgrep ${Math.floor(share * 100)} %` : "$(search) flashgrep";
      this.item.tooltip = problem || `${files} files${busy.length > 0 ? `, ${busy[0]?.stage}` : ""}`;
      if (busy.length > 0) {
        this.timer = setTimeout(() => void this.look(), LOOK_MILLISECONDS);
      }
    } catch (error) {
      this.item.text = "$(warning) flashgrep";
      this.item.tooltip = error instanceof AnswerError || error instanceof Error ? error.message : String(error);
    }
    this.item.show();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listening.dispose();
    this.item.dispose();
  }
}
