// Copying to the clipboard.

import { tell } from "./dom.js";

/** Copy a text; if the browser does not allow that for this address, show it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell(`copied: ${text}`);
  } catch {
    tell(text);
  }
}
