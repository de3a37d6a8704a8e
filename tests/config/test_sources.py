"""Settings: where they come from, what is refused, and what a repository may not say."""

import os
import sys
from pathlib import Path

import pytest
from platformdirs import macos, unix

from flashgrep.base import config
from flashgrep.base.config import Settings, load
from flashgrep.base.errors import BadSetting
from flashgrep.base.paths import (
    Paths,
    cache_folder,
    config_file,
    make_private,
    state_folder,
)
from flashgrep.base.project_settings import with_project


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_later_sources_win_field_by_field_and_the_origin_is_kept(
    tmp_path: Path,
) -> None:
    user = write(
        tmp_path / "config.toml", "[tcp]\nport = 7001\n[read]\nmax_bytes = 6000\n"
    )
    project = write(
        tmp_path / "p" / ".flashgrep" / "config.toml",
        "read_only = true\n[read]\nmax_bytes = 5000\n[write]\nmax_bytes = 8000\n",
    )
    loaded = load(
        user_file=user,
        environ={
            "FLASHGREP_WRITE_MAX_BYTES": "8000",
            "FLASHGREP_READ_ONLY": "false",
            "PATH": "/bin",
        },
        flags={"tcp.enabled": False},
    )
    loaded = with_project(loaded, tmp_path / "p")
    expected = {
        "read_only": (True, str(project)),
        "tcp.port": (7001, str(user)),
        "tcp.enabled": (False, "flag"),
        "read.max_bytes": (5000, str(project)),
        "write.max_bytes": (8000, str(project)),
        "log.level": ("info", "default"),
    }
    assert {
        key: (config.get_value(loaded.settings, key), loaded.origins[key])
        for key in expected
    } == expected
    assert loaded.warnings == ()


def test_every_setting_is_read_somewhere() -> None:
    package = Path(config.__file__).parents[1]
    code = "".join(
        path.read_text() for path in package.rglob("*.py") if path.name != "config.py"
    )
    sections_are_passed_on = {
        key: key.rpartition(".")[2] for key, _ in config.list_settings()
    }
    assert not [
        key
        for key, leaf in sections_are_passed_on.items()
        if f"settings.{key}" not in code and f".{leaf}" not in code
    ]


def test_no_source_gives_the_defaults() -> None:
    assert load().settings == Settings()


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("prot = 1", "prot", "unknown setting prot"),
        ("[tcp]\nprot = 1", "tcp.prot", "did you mean tcp.port?"),
        ("[tcp]\nport = 70000", "tcp.port", "at most 65535"),
        ('[tcp]\nport = "7777"', "tcp.port", "valid integer"),
        ("tcp = 1", "tcp", "is a section"),
        ("read_only = 1", "read_only", "valid boolean"),
        ('[log]\nlevel = "loud"', "log.level", "'debug', 'info', 'warning' or 'error'"),
        ("[tcp", "", "not TOML"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_file_key_and_choices(
    tmp_path: Path, text: str, key: str, told: str
) -> None:
    file = write(tmp_path / "config.toml", text)
    with pytest.raises(BadSetting) as caught:
        load(user_file=file)
    assert caught.value.data["source"] == str(file)
    assert caught.value.data["key"] == key
    assert told in caught.value.message
    assert str(file) in caught.value.message


def test_a_wrong_value_is_an_error_even_when_a_later_source_overrides_it(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "config.toml", "[tcp]\nport = -1")
    with pytest.raises(BadSetting):
        load(user_file=file, environ={"FLASHGREP_TCP_PORT": "0"})


def test_an_unknown_variable_of_ours_is_an_error_and_others_are_not_looked_at() -> None:
    with pytest.raises(BadSetting, match="did you mean FLASHGREP_TCP_PORT"):
        load(environ={"FLASHGREP_TCP_PROT": "1"})
    assert (
        load(environ={"FLASHGREP_STATE_DIR": "/x", "OTHER": "1"}).settings == Settings()
    )


def test_the_example_is_a_valid_file_and_uncommented_it_gives_the_defaults(
    tmp_path: Path,
) -> None:
    text = config.format_example()
    assert load(user_file=write(tmp_path / "a.toml", text)).settings == Settings()
    settings = [
        line.removeprefix("# ") if " = " in line and line.count(" ") < 5 else line
        for line in text.split("\n")
    ]
    loaded = load(user_file=write(tmp_path / "b.toml", "\n".join(settings)))
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {str(tmp_path / "b.toml")}


@pytest.mark.parametrize("home", ["/home/u", "/Users/a b"])
@pytest.mark.parametrize("xdg", [None, "", "relative", "/x/y"])
def test_places_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, home: str, xdg: str | None
) -> None:
    monkeypatch.setenv("HOME", home)
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        if xdg is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, xdg)
    environ = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("FLASHGREP_")
    }
    for platform, theirs in (("linux", unix.Unix), ("darwin", macos.MacOS)):
        monkeypatch.setattr(sys, "platform", platform)
        dirs = theirs("flashgrep", appauthor=False)
        assert state_folder(environ) == dirs.user_state_dir
        assert cache_folder(environ) == dirs.user_cache_dir
        assert config_file(environ) == f"{dirs.user_config_dir}/config.toml"


def test_the_state_folder_can_be_named(tmp_path: Path) -> None:
    assert state_folder({"FLASHGREP_STATE_DIR": str(tmp_path)}) == str(tmp_path)
    assert Paths(str(tmp_path)).socket == str(tmp_path / "daemon.sock")


def test_the_cache_folder_goes_with_a_state_folder_that_is_named_unless_it_is_named_too(
    tmp_path: Path,
) -> None:
    state = {"FLASHGREP_STATE_DIR": str(tmp_path), "XDG_CACHE_HOME": "/elsewhere"}
    assert cache_folder(state) == Paths(str(tmp_path)).cache == str(tmp_path / "cache")
    assert cache_folder({**state, "FLASHGREP_CACHE_DIR": "/mine"}) == "/mine"


def test_a_state_folder_is_made_private(tmp_path: Path) -> None:
    make_private(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_state_folder_others_may_write_to_is_refused(
    tmp_path: Path, mode: int
) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(PermissionError, match="is writable by others"):
        make_private(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_state_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(PermissionError, match="belongs to user 12345"):
        make_private(str(tmp_path))
