"""Which names are never written: version control's own folder and ours, however they are spelled."""

PROTECTED = frozenset({".git", ".flashgrep"})
# Code points HFS+ drops from a name, so that ".g<200c>it" opens ".git"; the list is git's (utf8.c, next_hfs_char).
_IGNORED = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF],
)
_SHORT_NAMES = frozenset({"git~1", "flashg~1"})  # what an 8.3 file system may call them


def is_protected(name: bytes) -> bool:
    """Tell whether a file system could take this name for a protected one: case, ignored characters, short names."""
    if not (name.startswith(b".") or b"~" in name or name[:1] >= b"\x80"):
        return False
    plain = name.decode("utf-8", "replace").translate(_IGNORED).partition(":")[0].rstrip(" .").casefold()
    return plain in PROTECTED or plain in _SHORT_NAMES
