r"""The lines of ignore files, read by git (``.gitignore``, ``info/exclude``, the user's excludes) or by ripgrep.

ripgrep reads ``.ignore`` and ``.rgignore``, which git does not know, and so it decides what they mean; with the same
reader it reads ``-g`` and ``--iglob``. That reader (the crate ignore, gitignore.rs) differs from git's in these points,
besides the wildcards (``globset``):

    a line that is no UTF-8     ends the file: it and what follows are not read
    "a\t", "a\u2003"            blanks of all kinds at the end of a line are cut off; git cuts spaces and one "\r"
    "a\  "                      a backslash protects a space only if it is the last character
    "!"                         matches everything; git ignores the line
    "a\/"                       the folder a; the backslash is dropped with the slash
"""

import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from flashgrep.files import globset, wildcard

_BYTE_ORDER_MARK = "\ufeff"
_BLANKS = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode's White_Space; str.isspace() has four more."""


class Rule(NamedTuple):
    """One line of an ignore file."""

    ignores: bool
    folders_only: bool
    by_path: bool
    """Matched against the path from the ignore file's folder, not just the name."""
    glob: bytes


class RuleDialect(NamedTuple):
    """How the rules of an ignore file are written."""

    parse: Callable[[bytes], Iterator[Rule]]
    """Yields the rules of a file's text, except those that cannot match anything."""
    find_plain_name: Callable[[bytes], bytes | None]
    """Returns the one name that a glob matches if it has no wildcard, else None."""
    translate: Callable[[bytes], bytes]
    """Returns a glob's RE2 source; raises BadGlob if it cannot be parsed, TooDeep if the whole file cannot be used."""


def parse_git_rule(line: bytes) -> Rule:
    """Parse a line without its trailing blanks; the glob is empty if the line has no pattern."""
    ignores = not line.startswith(b"!")
    if ignores:
        glob = line
    else:
        glob = line[1:]
    folders_only = glob.endswith(b"/")
    glob = glob.removesuffix(b"/")
    return Rule(ignores, folders_only, b"/" in glob, glob.removeprefix(b"/"))


def parse_git_rules(text: bytes) -> Iterator[Rule]:
    """Yield the rules of an ignore file's text, as git reads it."""
    for line_given in io.BytesIO(text.removeprefix(b"\xef\xbb\xbf")):
        line = line_given.removesuffix(b"\n")
        if not line or line.startswith(b"#"):
            continue
        line = line.removesuffix(b"\r")
        trimmed = line.rstrip(b" ")
        backslashes = len(trimmed) - len(trimmed.rstrip(b"\\"))
        if backslashes % 2 and len(trimmed) < len(line):
            trimmed += b" "  # escaped by a backslash
        rule = parse_git_rule(trimmed)
        if rule.glob:
            yield rule


def parse_ripgrep_rules(text: bytes) -> Iterator[Rule]:
    """Yield the rules of an ignore file's text, as ripgrep reads it."""
    try:
        readable = text.decode()
    except UnicodeDecodeError as error:
        broken_line = text.rfind(b"\n", 0, error.start) + 1
        readable = text[:broken_line].decode()
    for line in readable.lstrip(_BYTE_ORDER_MARK).replace("\r\n", "\n").split("\n"):
        rule = parse_ripgrep_rule(line)
        if rule is not None and rule.glob:
            yield rule


def parse_ripgrep_rule(line: str) -> Rule | None:
    """Parse a line, or the value of ``-g``; None for a comment and a line of blanks, which are no rules."""
    if line.startswith("#"):
        return None
    if not line.endswith("\\ "):
        line = line.rstrip(_BLANKS)
    if not line:
        return None
    ignores = not line.startswith("!")
    is_escaped = line.startswith(("\\!", "\\#"))
    if is_escaped or not ignores:
        pattern = line[1:]
    else:
        pattern = line
    is_anchored = pattern.startswith("/")
    pattern = pattern.removeprefix("/")
    folders_only = pattern.endswith("/")
    if folders_only:
        pattern = pattern[:-1].removesuffix("\\")
    by_path = is_anchored or "/" in pattern
    glob = pattern.encode()
    if not by_path and not glob:
        return Rule(
            ignores, folders_only, by_path, b"*"
        )  # "!" and "\/": ripgrep puts "**/" before nothing
    if not by_path and b"[" in glob and globset.has_separator_set(glob):
        return Rule(ignores, folders_only, by_path=True, glob=b"**/" + glob)
    if glob.endswith(b"/**"):
        glob += b"/*"  # not the folder itself
    return Rule(ignores, folders_only, by_path, glob)


GIT_RULES = RuleDialect(
    parse_git_rules,
    partial(wildcard.find_plain_name, dialect=wildcard.GIT),
    partial(wildcard.translate, dialect=wildcard.GIT),
)
RIPGREP_RULES = RuleDialect(
    parse_ripgrep_rules,
    partial(wildcard.find_plain_name, dialect=wildcard.BRACES),
    globset.translate,
)
