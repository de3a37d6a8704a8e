"""flashgrep: one local daemon that answers every question about code.

``with flashgrep.open(".") as project: ...`` asks it from Python, ``flashgrep.aio.open`` asynchronously: docs/python.md.
"""

TYPE_CHECKING = False
"""As in ``typing``, whose import takes longer than ours: every command imports this module."""
if TYPE_CHECKING:
    from flashgrep.base.errors import (
        BadPattern,
        Busy,
        Conflict,
        DeadlineExceeded,
        FlashgrepError,
        Forbidden,
        InvalidParams,
        NotFound,
        TooLarge,
        Unavailable,
    )
    from flashgrep.client.errors import Ambiguous, Incomplete, Unreachable
    from flashgrep.client.project import Project, Results
    from flashgrep.client.project import open_project as open
    from flashgrep.client.values import (
        ChangedFile,
        Chunk,
        Count,
        Entry,
        File,
        Hit,
        Range,
        Symbol,
        Text,
    )

__version__ = "1.0.0rc1"
__all__ = [
    "Ambiguous",
    "BadPattern",
    "Busy",
    "ChangedFile",
    "Chunk",
    "Conflict",
    "Count",
    "DeadlineExceeded",
    "Entry",
    "File",
    "FlashgrepError",
    "Forbidden",
    "Hit",
    "Incomplete",
    "InvalidParams",
    "NotFound",
    "Project",
    "Range",
    "Results",
    "Symbol",
    "Text",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "__version__",
    "open",
]
HOMES = ("client.values", "client.errors", "base.errors", "client.project")
"""Modules with these names, the quickest to import first."""

if not TYPE_CHECKING:  # else any name would be known

    def __getattr__(name: str) -> object:
        """Return a name of the client, which is imported at the first use of one."""
        if name in __all__:
            source = "open_project" if name == "open" else name
            # Not importlib: the classic fgrep of a shell pays for each import.
            for module in HOMES:
                home = __import__(f"flashgrep.{module}", fromlist=[source])
                if hasattr(home, source):
                    value: object = getattr(home, source)
                    globals()[name] = value
                    return value
        raise AttributeError(f"module 'flashgrep' has no attribute {name!r}")
