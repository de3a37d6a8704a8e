"""The bounds of reading and writing, as one value handed down from the settings."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes unless the name says otherwise."""

    read_bytes: int = 192 * KIB
    """Most bytes of a file in one answer."""
    read_tokens: int = 8_000
    """Tokens (characters / 4) of one ``read_code`` answer whose caller set no budget."""
    write_bytes: int = 128 * KIB
    """Most UTF-8 bytes of new text in one call, chunk or operation of a batch."""
    staged_bytes: int = 16 * MIB
    """Most UTF-8 bytes a staged write may gather."""
    staged_sessions: int = 32
    """Staged writes under way at once."""
    staged_seconds: float = 24 * 3600
    """A staged write left alone this long is dropped."""
    edit_bytes: int = 64 * MIB
    """Largest file that is edited: an edit holds its file in memory."""
    whole_bytes: int = 1 * MIB
    """Files up to this size are read at once; larger ones block by block."""
    count_bytes: int = 16 * MIB
    """The lines of files up to this size are counted where their number is told; of larger ones once it is known."""
    hash_bytes: int = 1 * MIB
    """Files up to this size are hashed unasked: a megabyte takes about a millisecond."""
    batch_operations: int = 500
    """Operations in one batch; each file takes a descriptor."""
    tree_entries: int = 100_000
    """Entries of a folder that one call copies, moves or removes."""
