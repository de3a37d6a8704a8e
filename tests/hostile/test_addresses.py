"""Addresses that a repository names: nothing is sent to them, whatever is asked."""

import socket
from contextlib import closing

import pytest

from flashgrep.base.config import list_settings
from tests.conftest import DaemonAtHand, MakeProject
from tests.support.git import commit, git

CONFIG = """
[embedding]
provider = "openai"
url = "{url}"
model = "m"
[reranking]
provider = "http"
url = "{url}"
[refinement]
provider = "openai"
url = "{url}"
model = "m"
[team]
url = "{url}"
token_file = "/etc/hostname"
[servers]
languages = ["python"]
"""


@pytest.mark.slow
def test_a_repository_makes_the_daemon_connect_nowhere(
    cold_daemon: DaemonAtHand, project: MakeProject
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        root = project(
            {
                "a.py": "def needle():\n    pass\n",
                ".flashgrep/config.toml": CONFIG.format(url=url),
            }
        )
        commit(root)
        git(root, "config", "remote.origin.url", f"{url}/x.git")
        cold_daemon.environ["OPENAI_API_KEY"] = "secret"
        assert cold_daemon.run("index", ".", cwd=root).returncode == 0
        with closing(cold_daemon.wire("unix", root)) as wire:
            assert wire.call("search_code", query="needle")["results"]
            for method, params in (
                ("search_code", {"query": "needle", "project": "elsewhere"}),
                ("list_revisions", {"project": "elsewhere"}),
                ("query", {"text": "needle", "rev": "HEAD", "project": url}),
                ("index_codebase", {"path": url}),
                ("get_definition", {"path": "a.py", "line": 1, "column": 5}),
            ):
                wire.ask(method, **params)
            warnings = wire.call("stats")["settings_warnings"]
        assert sum(".flashgrep/config.toml" in warning for warning in warnings) >= 9
        with pytest.raises(BlockingIOError):
            server.accept()


def test_no_setting_of_a_project_is_an_address() -> None:
    allowed = {
        key
        for key, field in list_settings()
        if isinstance(field.json_schema_extra, dict)
        and field.json_schema_extra.get("project")
    }
    assert not {key for key in allowed if key.endswith(("url", "file", "model"))}
    sections = {key.partition(".")[0] for key in allowed}
    assert not sections & {
        "embedding",
        "reranking",
        "refinement",
        "team",
        "servers",
        "http",
        "tcp",
    }
