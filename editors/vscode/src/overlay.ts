/** Unsaved text: before each request, files changed since the last one are sent to the daemon. */

import { relative, sep } from "node:path";

import type { Client } from "./client";

/** An open file in the editor. */
export interface OpenFile {
  path: string;
  version: number;
  isDirty: boolean;
  getText(): string;
}

/** The daemon refuses larger texts; such files are searched as saved. */
const LARGEST = 4 * 1024 * 1024;

/** The unsaved files that the daemon has for one connection; it drops them with the connection. */
export class Overlay {
  private session = -1;
  private readonly versions = new Map<string, number>();

  constructor(private readonly client: Client) {}

  /** Send all changes to the daemon. */
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
