"""The lists of packages: those to train on, with licences, and those that must not be used in training."""

import re
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
ALLOW: Final = HERE / "allow.tsv"
AVOID: Final = HERE / "avoid.tsv"
EVALUATED: Final = HERE.parent / "benchmarks" / "search" / "packages.tsv"
"""Packages of the project's own evaluation."""

KINDS: Final = ("pypi", "npm", "debian", "source")
"""Registries; ``debian`` is a binary package with sources, ``source`` a source package."""

_PERMISSIVE: Final = re.compile(
    r"(?:0?bsd|mit\b|mit-|apache|isc\b|zlib|unlicense|public.domain|psf|python|hpnd|boost|bsl-1|postgres|openssl|expat"
    r"|cc0|curl|blessing|libpng|libtiff|wtfpl|historical permission|x11|\bgo\b|3-clause|2-clause|libtomcrypt|ruby)",
    re.IGNORECASE,
)
_RESTRICTED: Final = re.compile(
    r"gpl|gfdl|gnu|mpl|mozilla|epl|eclipse|cddl|eupl|sspl|busl|business|elastic|cecill|osl|artistic|proprietary"
    r"|commercial|non-?commercial|\bnc\b|cc-by|qpl|polyform",
    re.IGNORECASE,
)


class Package(NamedTuple):
    """One line of a list."""

    kind: str
    name: str
    version: str
    licence: str
    use: str
    """``train``, ``held`` (only for measuring) or ``avoid``."""

    @property
    def key(self) -> str:
        """The name for comparisons: registries and authors differ in case, ``_`` and ``-``."""
        return plain_name(self.name)


def plain_name(name: str) -> str:
    """Return a package's name without registry-specific parts: ``golang-github-gorilla-mux-dev`` is ``mux``."""
    name = re.sub(r"[_.]+", "-", name.lower()).removesuffix("-dev").removesuffix("-src")
    name = re.sub(
        r"^(?:librust-|ruby-|php-|golang-(?:github-|golang-|go\.)?|lib(?=.*-java$))",
        "",
        name,
    )
    return re.sub(r"\d*(?:-java)?$", "", name.removesuffix("-java"))


def permissive(licence: str) -> bool:
    """Return whether a licence, or one of several to choose from, requires no more than a notice."""
    choices = re.split(r"\s+or\s+|\s*/\s*|\|", licence, flags=re.IGNORECASE)
    return any(
        _PERMISSIVE.search(choice) and not _RESTRICTED.search(choice)
        for choice in choices
    )


def read(path: Path) -> list[Package]:
    """Return the packages of a list; its first line names the columns, and unknown columns are ignored."""
    rows = [
        line.split("\t")
        for line in path.read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    return [Package(*(*row, "", "", "", "")[:5]) for row in rows[1:]]


def write(path: Path, packages: list[Package]) -> None:
    """Write a list."""
    rows = ["\t".join(package) for package in sorted(packages)]
    path.write_text("\n".join(["\t".join(Package._fields), *rows]) + "\n", "utf-8")


def kept_out() -> list[Package]:
    """Return all packages that must not be trained on: common evaluation repositories, and those of our evaluation."""
    own = read(EVALUATED) if EVALUATED.exists() else []
    return read(AVOID) + [
        package._replace(kind=package.kind.replace("deb", "debian"), use="avoid")
        for package in own
    ]


def clashes(allowed: list[Package], avoided: list[Package]) -> list[Package]:
    """Return the packages to train on that must also be avoided, across registries."""
    names = {package.key for package in avoided}
    return [
        package
        for package in allowed
        if package.use == "train" and package.key in names
    ]
