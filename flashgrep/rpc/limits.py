"""The bounds of one daemon's wires, together so that one value is passed down."""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of everything; times in seconds, sizes in bytes."""

    max_line: int = 8 * MIB
    """A request longer than this is refused, without being held in memory."""
    max_line_reading: int = MIB
    """The same for a request that does not write: nothing it can ask needs more. A batch counts as a whole."""
    max_line_before_auth: int = 64 * 1024
    """Whoever has not shown the token yet may only cost us this much; a token is far shorter."""
    in_flight: int = 32
    """Calls running at once per connection."""
    waiting: int = 32
    """Lines read ahead while all run, so that a cancellation among them is seen; then reading pauses."""
    held_bytes: int = 16 * MIB
    """Bytes of lines read and not answered yet, per connection; past it reading pauses too."""
    batch_items: int = 1000
    """A batch of eight million bytes could hold four million faulty items, each costing an answer."""
    call_seconds: float = 120.0
    """The hard end of every call, whatever deadline its parameters name."""
    first_line_seconds: float = 30.0
    """A TCP connection that sends no whole line for so long is closed."""
    write_seconds: float = 30.0
    """A client that does not take the next 64 KiB of its answers in so long is hung up on."""
    queued_bytes: int = 16 * MIB
    """Answers waiting for a slow reader; past it, its calls wait too."""
    connections: int = 1024
    """Open connections per listener; further ones are told to try again."""
