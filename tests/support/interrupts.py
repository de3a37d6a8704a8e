"""Interrupts that reach the programs which a test starts."""

import signal


def allow_interrupts() -> None:
    """Let children see SIGINT: a shell has it ignored in what runs in the background, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
