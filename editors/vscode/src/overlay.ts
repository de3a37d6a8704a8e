/** Unsaved text: before a question, the daemon gets the files that changed since the last one. */

import { relative, sep } from "node:path";

import type { Client } from "./client";

/** An open file as the editor has it. */
export interface OpenFile {
  path: string;
  version: number;
  isDirty: boolean;
  getText(): string;
}

/** The daemon refuses larger ones; such a file is searched as it was saved. */
const LARGEST = 4 * 1024 * 1024;

/** What the daemon knows of one connection's unsaved files; it forgets them with the connection. */
export class Overlay {
  private session = -1;
  private readonly versions = new Map<string, number>();

  constructor(private readonly client: Client) {}

  /** Bring the daemon up to date. */
  send(open: readonly OpenFile[]): void {
    if (this.session !== this.client.session) {
      this.session = this.client.session;
      this.versions.clear();
    }
    const seen = new Set<string>();
    for (const file of open) {
      const path = relative(this.client.root, file.path).split(sep).join("/");
      if (!file.isDirty || path === "" || path.startsWith("../") || path === "..") {
        continue;
      }
      const text = file.getText();
      if (text.length > LARGEST) {
        continue;
      }
      seen.add(path);
      if (this.versions.get(path) !== file.version) {
        this.versions.set(path, file.version);
        void this.client.notify("buffers", { action: "open", path, text, version: file.version });
      }
    }
    for (const path of this.versions.keys()) {
      if (!seen.has(path)) {
        this.versions.delete(path);
        void this.client.notify("buffers", { action: "close", path });
      }
    }
  }
}
