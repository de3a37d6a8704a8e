"""The settings that pages print are settings, and their commands run."""

import shutil
import tomllib
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand
from tests.support.examples import find_example

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("page", "start"),
    [
        ("docs/servers.md", "[servers]"),
        ("docs/settings.md", "[embedding]"),
        ("docs/team.md", "# config.toml"),
    ],
)
def test_the_settings_of_a_page_are_taken(
    cold_daemon: DaemonAtHand, page: str, start: str
) -> None:
    text = find_example(page, start).text
    file = Path(cold_daemon.environ["XDG_CONFIG_HOME"], "flashgrep", "config.toml")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    shown = cold_daemon.run("config", "show")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = {line.split()[0]: line for line in shown.stdout.splitlines()}
    for section, values in tomllib.loads(text).items():
        for name in values:
            assert rows[f"{section}.{name}"].endswith(str(file))


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell")
def test_the_model_of_the_package_is_listed_and_chosen(
    daemon: DaemonAtHand, tmp_path: Path
) -> None:
    for line in find_example("docs/settings.md", "pip install").commands:
        # A model is added in tests/models.
        if line.startswith(("fgrep model add", "pip")):
            continue
        ran = daemon.shell(line, tmp_path)
        assert ran.returncode == 0, (line, ran.stderr)
        assert "built" in ran.stdout
