"""How a folder of the editor comes to its daemon."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from flashgrep.parts.lsp.folders import connect_bound
from tests.cli.test_client_retries import VERSION, Dying
from tests.conftest import short_folder


class Replaced(Dying):
    """Daemons of which so many end before they answer, as each does that a newer one replaces just then."""

    def _result(self, request: Any) -> Any:
        if request["method"] == "$/version":
            return VERSION
        self.asked.append(request["method"])
        return (
            None
            if len(self.asked) <= self._deaths
            else {"roots": [request["params"]["folder"]]}
        )


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_daemon_that_ends_before_it_is_bound_is_done_without(
    deaths: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = short_folder()
    monkeypatch.setenv("FLASHGREP_STATE_DIR", str(state))
    daemon = Replaced(state, deaths)
    try:
        if deaths > 1:
            with pytest.raises(ConnectionError):
                connect_bound(str(tmp_path), adopt=True)
        else:
            connected, root = connect_bound(str(tmp_path), adopt=True)
            connected.close()
            assert root == str(tmp_path)
        assert daemon.asked == ["$/bind"] * min(2, deaths + 1)
    finally:
        daemon.close()
        shutil.rmtree(state)
