"""Signals that reach the programs which a test starts."""

import signal


def allow_interrupts() -> None:
    """Let children see SIGINT: a shell has it ignored in what runs in the background, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def allow_signal(number: signal.Signals) -> None:
    """Let children see a signal: ``nohup`` has SIGHUP ignored, and children inherit that."""
    if number == signal.SIGINT:
        allow_interrupts()
    elif signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
