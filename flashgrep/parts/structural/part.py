"""Search by syntax, and rewriting of what it finds."""

from collections.abc import Iterator

from flashgrep.api.part import CheckResult, Part
from flashgrep.parts.structural import methods
from flashgrep.parts.structural.structural_matcher import INSTALL, is_installed


def check_engine() -> Iterator[CheckResult]:
    """Check whether the engine is installed: it is an optional package."""
    if is_installed():
        installed = "ast-grep is installed"
    else:
        installed = f"not installed: {INSTALL}"
    yield CheckResult("ok", "by syntax", f"fgrep structural: {installed}")


PART = Part(
    name="structural",
    summary="Search by syntax, and rewriting of what it finds.",
    requires=("edit",),
    handlers=(*methods.HANDLERS,),
    checks=(check_engine,),
)
