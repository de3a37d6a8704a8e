"""The revisions of a repository, their files, its remotes, and its history. Nothing is checked out or written.

As everywhere in this package, no command runs a program that the repository configures. ``rev-list`` ignores the
settings of ``log`` (signatures, mailmaps). ``blame`` gets ``--no-textconv`` and a commit, since without a commit it
would run the clean filters of the work tree; and ``--no-ignore-revs-file``, since it would read whatever file
``blame.ignoreRevsFile`` names.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process

from flashgrep.base.bounded_cache import BoundedCache
from flashgrep.base.checkpoint import checkpoint
from flashgrep.base.errors import FlashgrepError, InvalidParams, NotFound, Unavailable
from flashgrep.base.model import path_to_text
from flashgrep.parts.git.program import Git, Object, ObjectReader, missing_object

INDEX: Final = ":index"
"""The name of the revision that stands for the staged files."""
MOST_COMMIT: Final = 1 << 20
NEAREST: Final = 5
MOST_REFS: Final = 20_000
KEPT_LISTINGS: Final = 4
_FILE: Final = b"100"
"""The prefix of a regular file's mode; symbolic links (120000) and submodules (160000) have no text of their own."""

_PART: Final = r"(?:(?!\.\.|@\{)[^\x00-\x20\x7f~^:?*\[\\])+"
_STEPS: Final = r"(?:[~^]\d{0,7}|@\{\d{1,7}\}|\^\{(?:commit)?\})*"
_ONE: Final = rf"(?!-)(?:{_PART}{_STEPS})"
_REVISION: Final = re.compile(_ONE)
_RANGE: Final = re.compile(rf"(?P<old>{_ONE}|)(?P<dots>\.\.\.?)(?P<new>{_ONE}|:index|)")
"""The names of gitrevisions(7) with ``~``, ``^`` and ``@{n}``, but not those that search messages or name a path."""
_STAGED: Final = re.compile(
    rb"(\d{6}) ([0-9a-f]{40,64}) (\d)\t([^\0]+)\0  ctime: .*\n  mtime: (\d+):(\d+)\n  dev: \d+\tino: (\d+)\n.*\n"
    rb"  size: (\d+)\t.*\n"
)
"""An entry of ``git ls-files --stage --debug -z``."""
_URL: Final = re.compile(
    r"(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)"
)
_SCP: Final = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?![/:])(?P<path>\S+)")
"""The scp-like form; an address without a host is a path, which means nothing on another machine."""
_FIELDS: Final = "%H%x00%P%x00%at%x00%an%x00%s"
_NAMES: Final = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:unix)"
_KINDS: Final = {
    b"refs/heads/": "branch",
    b"refs/remotes/": "remote",
    b"refs/tags/": "tag",
}
_BLAMED: Final = re.compile(rb"([0-9a-f]{40,64}) (\d+) (\d+)(?: (\d+))?")
MOST_SUBJECT: Final = 300
"""Characters of a commit's first line, and of an author's name."""


class Revision(NamedTuple):
    """A resolved name: a commit with its tree and time, in seconds; the commit is empty for the index."""

    commit: bytes
    tree: bytes
    time: int


class File(NamedTuple):
    """A file of a revision: the object id of its content, and its size in bytes (-1: unknown)."""

    blob: bytes
    size: int


Files = dict[bytes, File]
"""Files by path, in the order of their paths."""


class Staged(NamedTuple):
    """A file in git's index: the object id of its content, and the size, mtime and inode of the file git read."""

    blob: bytes
    size: int
    mtime_ns: int
    inode: int


class Range(NamedTuple):
    """Two revisions by name; ``merge_base``: compare the newer one with its merge base with the older one."""

    old: str
    new: str
    merge_base: bool


def parse_revision(text: str) -> str | Range:
    """Return the name of a revision, or the range, in a parameter.

    Raises:
        InvalidParams: invalid_revision, it cannot be a revision; git is not run.

    """
    if text == INDEX or _REVISION.fullmatch(text):
        return text
    match = _RANGE.fullmatch(text)
    if match is None or (match["new"] == INDEX and match["dots"] == "..."):
        raise InvalidParams(
            f"rev: not a valid revision: {text!r}",
            reason="invalid_revision",
            field="rev",
            allowed="a branch, tag or commit, such as main, v1.2 or HEAD~3; :index; or a range, such as main..HEAD",
        )
    return Range(
        match["old"] or "HEAD",
        match["new"] or "HEAD",
        merge_base=match["dots"] == "...",
    )


@dataclass(slots=True)
class Repository:
    """The repository that contains a project's folder; only files below that folder belong to the project."""

    git: Git
    objects: ObjectReader
    prefix: bytes
    """The project's folder in the repository, with a trailing slash; empty: the top."""
    is_shallow: bool
    is_bare: bool
    index: Path
    """The file of git's index."""
    _listings: BoundedCache[bytes, Files] = field(
        default_factory=lambda: BoundedCache(KEPT_LISTINGS)
    )

    @classmethod
    def open(cls, git: Git) -> "Repository":
        """Return the repository; raises as ``Git.run``."""
        facts = ("--is-shallow-repository", "--is-bare-repository", "--show-prefix")
        shallow, bare, prefix = git.run("rev-parse", *facts).split(b"\n", 2)
        index = git.run(
            "rev-parse", "--git-path", "index"
        )  # a run of its own: a path may contain line ends
        path = Path(os.fsdecode(git.folder.path)) / os.fsdecode(
            index.removesuffix(b"\n")
        )
        return cls(
            git,
            ObjectReader(git),
            prefix.removesuffix(b"\n"),
            shallow == b"true",
            bare == b"true",
            path,
        )

    def close(self) -> None:
        """End the git process."""
        self.objects.close()

    def resolve(self, name: str) -> Revision:
        """Return the commit that a name currently refers to.

        Raises:
            NotFound: revision_not_found, with the nearest names of branches and tags.
            Unavailable: object_missing, in a partial clone.

        """
        base = re.match(_PART, name)
        if base is not None:
            self.git.check_name(base[0])
        # "^{commit}" peels annotated tags, and rejects names of trees and files.
        object_ = self.objects.find(
            name.encode("utf-8", "surrogateescape") + b"^{commit}", MOST_COMMIT
        )
        if object_ is None or object_.data is None:
            raise self.explain_unknown(name)
        head = object_.data.partition(b"\n\n")[0]
        tree = re.search(rb"^tree ([0-9a-f]{40,64})$", head, re.MULTILINE)
        when = re.search(rb"^committer .*> (\d{1,12}) ", head, re.MULTILINE)
        if tree is None:
            raise Unavailable(
                f"git cannot read the commit of {name}", reason="repository_broken"
            )
        return Revision(object_.name, tree[1], int(when[1]) if when else 0)

    def find_merge_base(self, one: Revision, other: Revision) -> Revision:
        """Return the best common ancestor of two commits; raises NotFound if there is none."""
        bases = self.git.run("merge-base", "--all", one.commit, other.commit).split()
        if not bases:
            raise NotFound(
                "rev: the two revisions have no common ancestor",
                reason="revision_not_found",
            )
        return self.resolve(bases[0].decode("ascii"))

    def list_files(self, revision: Revision) -> Files:
        """Return the project's files in a revision; raises as ``Git.run``, and Unavailable (object_missing)."""
        files = self._listings.find(revision.tree)
        if files is None:
            tree = revision.tree
            if self.prefix:
                entry = self.git.run(
                    "ls-tree",
                    "-z",
                    "--full-tree",
                    tree,
                    "--",
                    self.prefix.removesuffix(b"/"),
                )
                _mode, *fields = entry.partition(b"\t")[0].split() or [b""]
                if fields[:1] != [b"tree"]:
                    return {}  # the revision does not have the project's folder
                tree = fields[1]
            try:
                printed = self.git.run("ls-tree", "-r", "-z", "-l", "--full-tree", tree)
            except Unavailable as error:
                if error.reason != "object_missing":
                    raise
                printed = self.git.run(
                    "ls-tree", "-r", "-z", "--full-tree", tree
                )  # without the sizes
            files = parse_tree(printed)
            # By tree, so that commits with the same files share a listing.
            self._listings.put(revision.tree, 1, files)
        return files

    def list_staged_files(self) -> dict[bytes, Staged]:
        """Return the project's staged files by path; for a file in conflict, our side."""
        files = {}
        for entry in _STAGED.finditer(
            self.git.run("ls-files", "--stage", "--debug", "-z")
        ):
            checkpoint()
            mode, blob, stage, path, seconds, rest, inode, size = entry.groups()
            # Stage 0: merged; 2: our side of a conflict (gitrevisions(7),
            # ":<n>:<path>").
            if mode.startswith(_FILE) and stage in b"02":
                files[path] = Staged(
                    blob,
                    int(size),
                    int(seconds) * 1_000_000_000 + int(rest),
                    int(inode),
                )
        return dict(sorted(files.items()))

    def index_time(self) -> int:
        """Return the time when git's index was written, in nanoseconds; 0 if there is none."""
        try:
            return self.index.stat().st_mtime_ns
        except OSError:
            return 0

    def read(self, path: bytes, blob: bytes, most: int) -> Object:
        """Return the content of a file.

        Raises:
            Unavailable: object_missing, the clone does not have it, and it is not fetched.

        """
        try:
            object_ = self.objects.find(blob, most)
        except Unavailable as error:
            error.data["file_path"] = path_to_text(path)
            raise
        if object_ is None:
            raise missing_object(blob.decode("ascii"), file_path=path_to_text(path))
        return object_

    def explain_unknown(self, name: str) -> NotFound:
        """Return the error for an unknown name, with the nearest names of branches and tags."""
        base = re.match(_PART, name)
        self.git.check_names()
        printed_names = self.git.run(
            "for-each-ref", f"--count={MOST_REFS}", "--format=%(refname:short)"
        )
        names = printed_names.decode("utf-8", "replace").splitlines()
        near = process.extract(
            base[0] if base else name, names, scorer=fuzz.WRatio, limit=NEAREST
        )
        message = f"no such revision: {name}"
        more = {}
        if not names:
            message += "; the repository has no commit yet"
        elif self.is_shallow:
            message += "; the clone is shallow and lacks older commits"
            more = {
                "suggestion": "git fetch --unshallow, if you mean an older commit; flashgrep never fetches"
            }
        names_near = [name_near for name_near, _, _ in near]
        if names_near:
            message += f"; near: {', '.join(names_near)}"
        return NotFound(
            message, reason="revision_not_found", rev=name, near=names_near, **more
        )


def parse_tree(printed: bytes) -> Files:
    """Return the regular files in the output of ``git ls-tree -z``, with or without sizes."""
    files: Files = {}
    for line in printed.split(b"\0"):
        checkpoint()
        if line.startswith(_FILE):
            about, _, path = line.partition(b"\t")
            _mode, _kind, blob, *size = about.split()
            # There is none without ``-l``, and ``BAD`` for a blob that is missing.
            number = -1
            if size and size[0].isdigit():
                number = int(size[0])
            files[path] = File(blob, number)
    return dict(sorted(files.items()))  # a malicious tree may be in any order


def name_address(address: str) -> str:
    """Return the host and path of a repository's address, without a user name; empty if it has no host."""
    match = _URL.fullmatch(address) or _SCP.fullmatch(address)
    if match is None:
        return ""
    return f"{match['host'].lower()}/{match['path'].strip('/').removesuffix('.git')}"


def list_addresses(git: Git) -> list[str]:
    """Return the normalized addresses of a clone's remotes; none if it is not a repository."""
    try:
        printed = git.run("config", "-z", "--get-regexp", r"^remote\..*\.url$")
    except FlashgrepError:  # git also fails if nothing is found
        return []
    urls = [
        line.decode("utf-8", "replace").partition("\n")[2]
        for line in printed.split(b"\0")
    ]
    return [name for name in map(name_address, urls) if name]


class Commit(NamedTuple):
    """A commit: its object id, its parents, the author's time and name, and the first line of its message."""

    name: str
    parents: tuple[str, ...]
    time: int
    author: str
    subject: str


class NamedRevision(NamedTuple):
    """A branch or tag: its short name, its kind, its commit and time."""

    name: str
    kind: str
    commit: str
    time: int


class BlameSpan(NamedTuple):
    """Consecutive lines from the same commit: the first one, how many, and the first one's number in that commit."""

    start: int
    lines: int
    commit: str
    old_start: int


def list_names(repository: Repository, most: int) -> list[NamedRevision]:
    """Return branches and tags, newest first; raises as ``Git.run``."""
    repository.git.check_names()
    printed = repository.git.run(
        "for-each-ref",
        "--sort=-creatordate",
        f"--count={most}",
        f"--format={_NAMES}",
        *map(bytes.decode, _KINDS),
    )
    revisions = []
    for line in printed.splitlines():
        full, commit, peeled, time = line.split(b"\0")
        prefix = next(prefix for prefix in _KINDS if full.startswith(prefix))
        name = full.removeprefix(prefix).decode("utf-8", "replace")
        revisions.append(
            NamedRevision(
                name, _KINDS[prefix], (peeled or commit).decode("ascii"), int(time or 0)
            )
        )
    return revisions


def list_commits(
    repository: Repository,
    rev: str,
    path: bytes,
    skip: int,
    most: int,
    since: str | None = None,
) -> list[Commit]:
    """Return the commits up to and including a revision that changed a path (empty: the project), newest first.

    ``since``: a revision whose commits are left out.

    Raises:
        NotFound: revision_not_found.
        Unavailable, Forbidden, Abandoned, Expired: as ``Git.run``.

    """
    starts = [repository.resolve(rev).commit]
    if since is not None:
        starts.append(b"^" + repository.resolve(since).commit)
    limits = (f"--max-count={most}", f"--skip={skip}")
    # If the project is not the repository's top folder, only its own folder counts.
    under = [path] if path else [b"."] if repository.prefix else []
    printed = repository.git.run(
        "rev-list", *limits, f"--format={_FIELDS}", *starts, "--", *under
    )
    return list(_parse_commits(printed))


def blame(
    repository: Repository, rev: str, path: bytes, lines: tuple[int, int]
) -> tuple[list[BlameSpan], list[Commit]]:
    """Return the commit of each line of a file at a revision, in groups of lines, and these commits.

    Raises:
        NotFound: revision_not_found, or file_not_found if the revision has no such file or not this many lines.
        Unavailable, Forbidden, Abandoned, Expired: as ``Git.run``.

    """
    start = repository.resolve(rev).commit
    line_range = f"-L{lines[0]},{lines[1]}"
    try:
        printed = repository.git.run(
            "blame",
            "--no-textconv",
            "--no-ignore-revs-file",
            "--no-progress",
            "--porcelain",
            line_range,
            start,
            "--",
            path,
        )
    except Unavailable as error:
        # git has one exit status for all failures; LC_ALL=C makes its messages the same
        # everywhere.
        if "no such path" in error.message or "has only" in error.message:
            message = f"no such file or line in the revision: {path_to_text(path)}"
            raise NotFound(
                message, reason="file_not_found", target_path=path_to_text(path)
            ) from None
        raise
    spans: list[BlameSpan] = []
    for line in printed.split(b"\n"):
        head = _BLAMED.fullmatch(line)
        # In the porcelain format, a header with a fourth field begins a group of lines
        # from one commit.
        if head is None or head[4] is None:
            continue
        checkpoint()
        spans.append(
            BlameSpan(int(head[3]), int(head[4]), head[1].decode("ascii"), int(head[2]))
        )
    names = list(dict.fromkeys(blame_span.commit for blame_span in spans))
    if not names:  # rev-list without a revision is an error
        return spans, []
    printed = repository.git.run(
        "rev-list", "--no-walk=unsorted", f"--format={_FIELDS}", *names, "--"
    )
    return spans, list(_parse_commits(printed))


def _parse_commits(printed: bytes) -> Iterator[Commit]:
    for line in printed.decode("utf-8", "replace").split("\n"):
        parts = line.split("\0", 4)
        if len(parts) > 4:  # noqa: PLR2004 - the fields of _FIELDS
            name, parents, time, author, subject = parts
            yield Commit(
                name,
                tuple(parents.split()),
                int(time or 0),
                author[:MOST_SUBJECT],
                subject[:MOST_SUBJECT],
            )
