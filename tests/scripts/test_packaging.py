"""The texts for those who package flashgrep elsewhere, and the list of what a release bundles and needs."""

import json
import re
import shutil
import subprocess
import tomllib

import pytest

from flashgrep import __version__
from flashgrep.base.installation import REPOSITORY
from scripts.tools.plugins import write_semantic
from scripts.tools.release import ROOT, list_components

FOLDER = ROOT / "docs" / "packaging"
FEATURE = FOLDER / "devcontainer-feature"


@pytest.mark.parametrize(
    "name",
    ["flashgrep.rb", "flake.nix", "PKGBUILD", "Dockerfile", "devcontainer-feature/install.sh"],
)  # fmt: skip
def test_every_text_names_this_version(name: str) -> None:
    versions = re.findall(
        r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", (FOLDER / name).read_text()
    )
    assert set(versions) == {__version__}


def test_the_package_names_the_repository_that_the_program_names() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert package["project"]["urls"]["Repository"] == REPOSITORY


@pytest.mark.parametrize(
    ("shell", "name"), [("bash", "PKGBUILD"), ("sh", "devcontainer-feature/install.sh")]
)
def test_shells_can_read_what_is_theirs(shell: str, name: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(FOLDER / name)], check=True)


def test_the_feature_installs_the_version_it_names() -> None:
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text())
    assert feature["id"] == "flashgrep"
    assert feature["options"]["version"]["default"] == __version__


def test_versions_are_written_as_each_reader_has_them() -> None:
    assert write_semantic("1.0.0rc1") == "1.0.0-rc.1"
    assert write_semantic("1.2.3") == "1.2.3"
    package = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())
    assert package["version"] == write_semantic(__version__)


def test_what_a_release_needs_is_listed_with_its_licences() -> None:
    listed = list_components()
    components = {part["name"]: part for part in listed["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=;\[ ]", requirement)[0].replace(".", "-").lower()
        if ";" not in requirement:
            assert components[name]["version"]
    for part in components.values():
        (licence,) = part["licenses"]
        named = licence.get("expression") or licence["license"]["name"]
        assert named not in {"", "not named"}, part["name"]
    assert listed["metadata"]["component"]["version"] == __version__
