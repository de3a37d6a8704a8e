"""The tools that are compared with ours: where each comes from, its commands and the form of its answers.

In a command ``{tree}`` is the folder that is searched, ``{state}`` the tool's own folder, ``{text}`` the query's text
and ``{flags}`` the flags of its kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

LETTERS: Mapping[str, tuple[str, ...]] = {"insensitive": ("-i",)}
"""The flags of each kind of question; ``""``: of all other kinds."""
ZOEKT_CASE = {"": ("case:yes",), "insensitive": ("case:no",)}
ALL_HITS = 0


class Syntax(Enum):
    """How a question's text is to be read."""

    LITERAL = "literal"
    REGEX = "regex"
    MEANING = "meaning"


class Form(Enum):
    """What a tool prints: ``path:line:text``, the JSON of our socket, or the JSON of probe."""

    LINES = "lines"
    SOCKET = "socket"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Question:
    """A query of one kind."""

    kind: str
    text: str
    syntax: Syntax = Syntax.LITERAL


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask a tool, a column of the table: a whole command, or a call over our socket."""

    name: str
    literal: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    """The command of a regular expression; empty: the tool takes none."""
    meaning: tuple[str, ...] = ()
    """The command of a question in words."""
    escape: bool = False
    """Whether it supports only regular expressions, so that a literal is escaped."""
    blank: str = " "
    """What stands for a blank in a pattern, of a tool whose patterns end at one."""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: LETTERS)
    form: Form = Form.LINES
    limit: int | None = None
    """Over our socket: the most hits, or ``ALL_HITS``."""

    def command(self, question: Question) -> tuple[str, ...]:
        """Return the command of a question; empty if the tool cannot answer it."""
        if question.syntax is Syntax.MEANING:
            return self.meaning
        if question.syntax is Syntax.REGEX:
            return self.regex
        return self.literal

    @property
    def is_whole(self) -> bool:
        """Whether an answer has every hit, so that it can be compared with a full scan."""
        return not self.limit


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool: how it is installed, indexes, follows changes and is asked."""

    name: str
    programs: tuple[str, ...]
    ways: tuple[Way, ...] = ()
    version: str = ""
    """The version that is installed; of a tool without a registry, asked by ``version_command``."""
    version_command: tuple[str, ...] = ()
    package: str = ""
    """A Python package."""
    module: str = ""
    """A Go module."""
    crate: str = ""
    """A Rust crate."""
    index: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    """A command that ends when further work after the index is done, such as symbols."""
    watches: bool = False
    """Whether it notices saved files by itself; else it is indexed again, unless it needs no index."""
    serve: tuple[str, ...] = ()
    """The command of its server, started once the index is made."""
    ready: tuple[str, ...] = ()
    """A command that prints ``state ready`` or similar once a background index is ready."""
    where: str = ""
    """The file or folder of its index; ``*`` matches names in the tree."""
    stop: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


OURS = {
    "FLASHGREP_STATE_DIR": "{state}/daemon", "FLASHGREP_CACHE_DIR": "{state}/cache", "FLASHGREP_TCP_PORT": "0",
    "XDG_CONFIG_HOME": "{state}/config",
}  # fmt: skip
PROBE = ("probe", "search", "--format", "json", "--exact", "--allow-tests")
ASK_ZOEKT = ("zoekt", "-index_dir", "{state}/index", "{flags}", "content:{text}")


def _like_grep(name: str, *program: str, tree: tuple[str, ...] = ()) -> Way:
    """Return the way of a command with grep's letters."""
    return Way(
        name,
        literal=(*program, "-n", "-F", "{flags}", "{text}", *tree),
        regex=(*program, "-n", "{flags}", "{text}", *tree),
    )


PEERS = (
    Peer("ripgrep", ("rg",), (_like_grep("rg", "rg", "--no-config"),), version_command=("rg", "--version")),
    Peer(
        "google/codesearch", ("cindex", "csearch"),
        (Way("csearch", ("csearch", "-n", "{flags}", "{text}"), ("csearch", "-n", "{flags}", "{text}"), escape=True),),
        version="v1.2.0", module="github.com/google/codesearch", index=("cindex", "{tree}"), where="{state}/index",
        environ={"CSEARCHINDEX": "{state}/index"},
    ),
    Peer(
        "sourcegraph/zoekt", ("zoekt-index", "zoekt"),
        (Way("zoekt", ASK_ZOEKT, ASK_ZOEKT, escape=True, blank=r"\x20", flags=ZOEKT_CASE),),
        index=("zoekt-index", "-index", "{state}/index", "{tree}"), where="{state}/index",
    ),
    Peer(
        "microsoft/tgrep", ("tgrep",), (_like_grep("tgrep", "tgrep", tree=("{tree}",)),),
        version_command=("tgrep", "--version"), index=("tgrep", "index", "{tree}"), serve=("tgrep", "serve", "{tree}"),
        ready=("tgrep", "status", "{tree}"), watches=True, where="{tree}/.tgrep",
    ),
    Peer(
        "glep", ("glep",), (_like_grep("glep", "glep"),), version="2.0.0", package="glep", index=("glep", "index"),
        watches=True, where="{tree}/.glep",
    ),
    Peer(
        "ripgrepx", ("rgx",), (_like_grep("rgx", "rgx"),), version="0.4.0", package="ripgrepx",
        index=("rgx", "--server", "start"), ready=("rgx", "--server", "status"), watches=True, where="{state}/rgx",
        stop=("rgx", "--server", "stop"), environ={"RGX_CACHE_DIR": "{state}/rgx"},
    ),
    Peer(
        "flashgrep", ("fgrep",),
        (
            _like_grep("`fgrep rg`", "fgrep", "rg"),
            _like_grep("`fgrep query`", "fgrep", "query", "--no-heading"),
            Way("`fgrep search-code`", meaning=("fgrep", "search-code", "{text}")),
            Way("socket, all", form=Form.SOCKET, limit=ALL_HITS),
            Way("socket, first 50", form=Form.SOCKET, limit=50),
        ),
        version_command=("fgrep", "--version"), index=("fgrep", "index", "--wait", "text", "{tree}"),
        settle=("fgrep", "index", "--wait", "all", "{tree}"), watches=True, where="{state}/cache",
        stop=("fgrep", "daemon", "stop"), environ=OURS,
    ),
    Peer(
        "probe", ("probe",), (Way("probe", (*PROBE, "{text}", "{tree}"), form=Form.PROBE),), version="0.6.0",
        crate="probe-code",
    ),
    Peer(
        "semble", ("semble",), (Way("semble", meaning=("semble", "search", "{text}", "{tree}")),), version="0.7.0",
        package="semble", index=("semble", "search", "where the index is made", "{tree}"), where="{state}/semble",
        environ={"XDG_CACHE_HOME": "{state}"},
    ),
    Peer(
        "ugrep-indexer", ("ugrep-indexer", "ugrep"),
        (_like_grep("ugrep --index", "ugrep", "--index", "-rI", "--ignore-files"),),
        version_command=("ugrep-indexer", "--version"), index=("ugrep-indexer", "-I", "{tree}"),
        where="{tree}/**/._UG#_Store",
    ),
)  # fmt: skip
