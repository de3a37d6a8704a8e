// Pauses in typing: what would delay results waits for one.

/** Wait for some milliseconds; rejects with the signal's reason if that comes first. */
export function rest(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); });
  });
}
