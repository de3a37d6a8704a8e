"""The command that adds a package, by the program that made this environment."""

import sys
from pathlib import Path

import pytest

from flashgrep.base.installation import advise_install


@pytest.mark.parametrize(
    ("receipt", "extra", "package"),
    [
        ("", "pip install 'flashgrep[models]'", "pip install mlx"),
        (
            "pipx_metadata.json",
            "pipx install --force 'flashgrep[models]'",
            "pipx inject flashgrep mlx",
        ),
        (
            "uv-receipt.toml",
            "uv tool install 'flashgrep[models]'",
            "uv tool install flashgrep --with mlx",
        ),
    ],
)
def test_a_package_is_added_by_what_made_the_environment(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    receipt: str,
    extra: str,
    package: str,
) -> None:
    if receipt:
        (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert advise_install("flashgrep[models]") == extra
    assert advise_install("mlx") == package
