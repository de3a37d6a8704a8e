"""Builds what is published, checks it, and lists its components: ``scripts/release``.

The components are those that the wheel contains, and the packages of the tested set that it needs; as CycloneDX.
"""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

from flashgrep import __version__

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "flashgrep"
BUNDLED: Final = (
    ("flashgrep-static-1", "machine-learning-model", "Apache-2.0", "the model of search by meaning, static.npz"),
    ("ripgrep-file-types", "data", "MIT OR Unlicense", "ripgrep's table of file types, files/types.txt"),
    ("unicode-character-database", "data", "Unicode-3.0", "properties of characters, pattern/unicode.txt"),
)  # fmt: skip
"""What the wheel contains that others made, or that was made from what others made."""


def main() -> int:
    """Build, check, and write the list of components."""
    place = ROOT / "build" / "dist"
    shutil.rmtree(place, ignore_errors=True)
    run("build", "--outdir", str(place), str(ROOT))
    made = sorted(map(str, place.iterdir()))
    wheels = [name for name in made if name.endswith(".whl")]
    run("twine", "check", "--strict", *made)
    run("check_wheel_contents", *wheels)
    listed = place / f"{PACKAGE}-{__version__}.cdx.json"
    listed.write_text(json.dumps(list_components(), indent=1) + "\n", "utf-8")
    sys.stdout.write("\n".join([*made, str(listed)]) + "\n")
    return 0


def run(module: str, *arguments: str) -> None:
    """Run a module of the environment; a failure ends this program."""
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, cwd=ROOT)


def list_components() -> dict[str, Any]:
    """Return the components of a release, as CycloneDX 1.6."""
    components: list[dict[str, Any]] = [
        {
            "type": kind,
            "name": name,
            "version": __version__,
            "licenses": [{"expression": licence}],
            "description": description,
        }
        for name, kind, licence, description in BUNDLED
    ]
    for package in sorted(find_needed(PACKAGE)):
        about = importlib.metadata.distribution(package)
        components.append(
            {
                "type": "library",
                "name": package,
                "version": about.version,
                "purl": f"pkg:pypi/{package}@{about.version}",
                "licenses": [{"license": {"name": find_licence(about)}}],
            }
        )
    subject = {"type": "application", "name": PACKAGE, "version": __version__}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
    }


def find_needed(package: str) -> set[str]:
    """Return the packages that one needs on this machine, and those that these need; without extras."""
    needed: set[str] = set()
    waiting = [package]
    while waiting:
        for name in _list_requirements(waiting.pop()):
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    return needed


def _list_requirements(package: str) -> Iterator[str]:
    for line in importlib.metadata.requires(package) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield re.sub(r"[-_.]+", "-", requirement.name).lower()


def find_licence(about: importlib.metadata.Distribution) -> str:
    """Return the licence that a package names in its metadata."""
    named = [
        *(about.metadata.get_all("License-Expression") or ()),
        *(
            classifier.rpartition(" :: ")[2]
            for classifier in about.metadata.get_all("Classifier") or ()
            if classifier.startswith("License ::")
        ),
        *(about.metadata.get_all("License") or ()),
    ]
    if not named:
        return "not named"
    return str(named[0]).partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
