"""Which files ripgrep would search below a folder: those of the index, less what flags take out, and what they add.

``-g`` takes precedence over ignore rules, those over ``-t`` and ``-T``, and those over the exclusion of hidden names.
So ``-g '*.py'`` finds ignored and hidden files, ``-t py`` hidden ones, and ``--hidden`` folders that were never listed.
The daemon keeps the entries of its folders that rules take out (``Snapshot.excluded``); each is judged again here.
"""

from collections.abc import Callable, Iterator, Sequence

from flashgrep.checkpoint import checkpoint
from flashgrep.cli.rg.arguments import Flag
from flashgrep.ingest.globs import Overrides, name_matcher, types
from flashgrep.ingest.walk import Walker
from flashgrep.paths import bundled_ripgrep
from flashgrep.search.snapshot import Snapshot


class Cover:
    """The effect of one call's flags on the files below one folder; paths are relative to that folder."""

    def __init__(self, flags: Sequence[Flag], from_cwd: bytes) -> None:
        """``from_cwd``: what is before a path as seen from the current folder, which globs are relative to.

        Raises:
            ValueError: a flag's value that is left for ripgrep to judge.

        """
        globs, iglobs = ([flag.value or "" for flag in flags if flag.name == name] for name in ("glob", "iglob"))
        depths = [int(flag.value or "") for flag in flags if flag.name == "max-depth"]
        self._overrides = Overrides(globs, iglobs)
        self._type_verdict = make_type_filter(flags)
        self._hidden = [flag.name for flag in flags if flag.name in {"hidden", "no-hidden"}][-1:] == ["hidden"]
        self._depth = depths[-1] if depths else None
        self._from_cwd = from_cwd
        self._entered: dict[bytes, bool] = {b"": True}
        names = any(flag.name == "type" for flag in flags) or any(not glob.startswith("!") for glob in globs + iglobs)
        self.adds = self._hidden or names
        """Whether files that the index does not cover may be searched."""

    def has(self, path: bytes) -> bool:
        """Return whether a file that the index covers is searched."""
        verdict = self._judge(path, is_dir=False)
        if verdict is None and self._type_verdict is not None:
            verdict = self._type_verdict(path)
        return verdict is not False

    def find_added(self, lead: bytes, snapshot: Snapshot, walker: Walker) -> Iterator[tuple[bytes, bool]]:
        """Yield what is searched below ``lead`` beside the index: files, and folders (True) with all that is in them.

        Raises:
            ValueError: it is not known, or one of the folders is to be searched to some depth alone.

        """
        if snapshot.excluded is None:
            raise ValueError("too many entries are ignored to be known")
        for full, is_dir in snapshot.excluded.items():
            checkpoint()
            if not full.startswith(lead):
                continue
            path = full[len(lead) :]
            verdict = self._judge(path, is_dir=is_dir)
            if verdict is None:
                verdict = not walker.is_ignored(full, is_dir=is_dir) and (
                    self._hidden if is_dir or self._type_verdict is None else self._type_verdict(path)
                )
            if verdict and is_dir and self._depth is not None:
                raise ValueError(path)
            if verdict or (verdict is None and self._hidden):
                yield path, is_dir

    def _judge(self, path: bytes, *, is_dir: bool) -> bool | None:
        """Return what depth and globs decide about an entry; None: nothing, so other rules apply."""
        if self._depth is not None and path.count(b"/") + is_dir >= self._depth:
            return False
        if self._overrides.is_empty:
            return None
        folder, _, name = path.rpartition(b"/")
        # A folder that globs take out is not entered, whatever they say of what is in it.
        enters = self._entered.get(folder)
        if enters is None:
            enters = self._entered[folder] = self._judge(folder, is_dir=True) is not False
        return self._overrides.verdict(self._from_cwd + path, name, is_dir) if enters else False


def make_type_filter(flags: Sequence[Flag]) -> Callable[[bytes], bool | None] | None:
    """Return what ``-t`` and ``-T`` say of a path: True for wanted, False for unwanted, None for neither.

    Raises:
        ValueError: a type that is not known, or is not made of one glob.

    """
    table = dict(types())
    for flag in flags:
        if flag.name == "type-add":
            name, _, glob = (flag.value or "").partition(":")
            if not (name.isascii() and name.isalnum()) or name == "all" or not glob or ":" in glob:
                raise ValueError(flag.value)
            table[name] = (*table.get(name, ()), glob)
    given = [(flag.name == "type", flag.value or "") for flag in flags if flag.name in {"type", "type-not"}]
    if not given:
        return None
    if bundled_ripgrep() is None or not {name for _, name in given} <= {*table, "all"}:  # our table is that one's
        raise ValueError(given)
    every = [glob for globs in table.values() for glob in globs]
    choices = [(wanted, name_matcher(every if name == "all" else table[name])) for wanted, name in given]
    rest = False if any(wanted for wanted, _ in given) else None

    def verdict(path: bytes) -> bool | None:
        name = path.rpartition(b"/")[2]
        return next((wanted for wanted, has_name in reversed(choices) if has_name(name)), rest)

    return verdict
