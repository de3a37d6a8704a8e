"""The examples of docs/team.md run as they are printed, with a database, repositories and a server of this machine."""

import json
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import DaemonAtHand
from tests.support.examples import find_example
from tests.support.git import commit, git
from tests.support.postgres import Server
from tests.team.serving import Client, run_team_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is the shell"),
]
PAGE = "docs/team.md"
SITE = "https://code.example.org"


@dataclass
class Shell:
    """An administrator's shell, in which what the page names is on this machine."""

    daemon: DaemonAtHand
    folder: Path
    meanings: dict[str, str]

    def run(self, command: str, **variables: str) -> str:
        """Run a command of the page, and return what it prints."""
        for word, meaning in self.meanings.items():
            command = command.replace(word, meaning)
        ran = self.daemon.shell(command, self.folder, **variables)
        assert ran.returncode == 0, (command, ran.stderr)
        return ran.stdout


@pytest.fixture
def shell(server: Server, cold_daemon: DaemonAtHand, tmp_path: Path) -> Shell:
    """Return a shell with an empty database and two bare clones."""
    for name in ("a", "b"):
        root = tmp_path / name
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        (root / "lock.c").write_text("int spin_lock(void);\n")
        commit(root)
        git(tmp_path, "clone", "-q", "--mirror", name, f"{name}.git")
    server.make_database("team_page")
    address = f"postgresql://postgres@127.0.0.1:{server.port}"
    meanings = {
        "postgresql://flashgrep@db.example.org/flashgrep": f"{address}/team_page",
        "postgresql://…": address,
        "https://git.example.org/a.git": str(tmp_path / "a.git"),
        "/srv/git/b.git": str(tmp_path / "b.git"),
        '"linux"': '"a"',
        "--project linux": "--project a",
        '"master"': '"main"',
        "kernel": "a",
        "tools": "b",
    }
    setting = find_example(PAGE, "pip install").commands[1]
    variable, _, database = setting.split()[1].partition("=")
    cold_daemon.environ[variable] = meanings[database]
    return Shell(cold_daemon, tmp_path, meanings)


def read_headers(settings: str) -> list[str]:
    """Return the headers that a proxy sets."""
    return re.findall(r"proxy_set_header (\S+)", settings)


def test_a_team_is_set_up_asked_and_asked_from_ones_own_machine(shell: Shell) -> None:
    printed = {
        command.partition(" #")[0].strip(): shell.run(command)
        for command in find_example(PAGE, "pip install").commands
        if not command.startswith(("pip", "export", "fgrep team serve"))
    }
    token = printed["fgrep team token ann"].split()[-1]
    with run_team_server(shell.daemon.environ_of_shell) as (_, port):
        address = f"http://127.0.0.1:{port}"
        asked = find_example(PAGE, "curl").text.replace(SITE, address)
        answer = json.loads(shell.run(asked, TOKEN=token))
        assert [hit["file_path"] for hit in answer["results"]] == ["lock.c"], answer
        settings = Path(
            shell.daemon.environ["XDG_CONFIG_HOME"], "flashgrep/config.toml"
        )
        settings.parent.mkdir(parents=True)
        example = find_example(PAGE, "# config.toml")
        settings.write_text(example.text.replace(SITE, address))
        token_file = tomllib.loads(example.text)["team"]["token_file"]
        file = Path(token_file.replace("~", shell.daemon.environ["HOME"]))
        file.parent.mkdir(exist_ok=True)
        file.write_text(token)
        file.chmod(0o600)
        found = shell.run(find_example(PAGE, "fgrep query").text)
        assert found == "lock.c:1:int spin_lock(void);\n"
    sign_on = find_example(PAGE, "fgrep team token")
    said = {}
    for command in sign_on.commands:
        words = command.split()
        if words[2] == "serve":
            options = words[3:]
        else:
            said[words[2]] = shell.run(command)
    with run_team_server(shell.daemon.environ_of_shell, *options) as (_, port):
        sent = read_headers(find_example(PAGE, "# nginx").text)
        values = [said["token"].split()[-1], "ann@example.org", "devs"]
        headers = {"Host": SITE.removeprefix("https://")}
        headers |= dict(zip(sent, values, strict=True))
        client = Client(port, values[0])
        status, answer = client.send(
            "/call/query", {"query": "spin_lock", "projects": "*"}, **headers
        )
        assert (status, len(answer["results"])) == (200, 2), answer


def test_a_store_is_made_of_parts(shell: Shell, server: Server) -> None:
    for name in "abc":
        server.make_database(name)
    made = shell.run(find_example(PAGE, "fgrep team init --shard").text)
    assert [line for line in made.splitlines() if line.startswith("shard")] == [
        f"shard {name}" for name in "abc"
    ]
