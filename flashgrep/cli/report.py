"""``fgrep doctor --report``: what a report of a problem needs, without private names.

Known folders get names (``<project 1>``, ``<state>``, ``~``), and whatever else looks like a path is left out, as are
settings that may be secrets: a report may be pasted where everybody can read it.
"""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from flashgrep import __version__
from flashgrep.api.part import CheckResult
from flashgrep.base.paths import PACKAGE, config_file
from flashgrep.base.plain_files import read_plain_file
from flashgrep.cli.daemon_client import find_user_paths
from flashgrep.cli.log_command import read_end

LOG_LINES: Final = 100
OPEN_FOLDERS: Final = (
    "/proc/", "/sys/", "/dev/null", "/dev/tty", "/dev/pts/", "/dev/std", "/dev/fd/", "/usr/bin/", "/usr/lib/", "/etc/",
)  # fmt: skip
"""Folders and devices that say nothing about their user; in /dev/shm are files."""
_PATH: Final = re.compile(r"(?<![\w.>~/])/[^\s\"'`,;:)\]}]+")
_SECRET: Final = re.compile(
    r"^(\s*[\w.\"-]*(?:key|token(?!s\b)|secret|password|dsn|url)[\w\"-]*\s*=).*",
    re.IGNORECASE | re.MULTILINE,
)
"""A setting whose value may let somebody in."""
_NAME_BYTES: Final = 3
"""Shorter names of users and projects are parts of ordinary words."""


def write_report(
    file: Path, findings: Iterable[CheckResult], status: Mapping[str, Any] | None
) -> None:
    """Write the report; ``status``: that of the daemon, if one runs."""
    names = list_private_names(status)
    lines = [
        f"flashgrep {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "",
    ]
    for finding in findings:
        lines.append(f"{finding.state:<5} {finding.check}: {finding.text}")
    try:
        text = read_plain_file(config_file(os.environ))
        settings = text.decode("utf-8", "replace")
    except OSError:
        settings = ""
    lines += ["", "settings:", _SECRET.sub(r"\1 <hidden>", settings)]
    if status is not None:
        lines += ["", "daemon:", json.dumps(status, indent=1)]
    lines += ["", "log:", *read_end(Path(find_user_paths().log), LOG_LINES)]
    lines += ["", "crash log:", *read_end(Path(find_user_paths().crash_log), LOG_LINES)]
    file.write_text(hide_names("\n".join(lines), names) + "\n", encoding="utf-8")


def list_private_names(status: Mapping[str, Any] | None) -> dict[str, str]:
    """Return private texts, each with what is written instead, the longest first."""
    paths = find_user_paths()
    names = {
        PACKAGE: "<package>",
        paths.state: "<state>",
        paths.cache: "<cache>",
        str(Path.home()): "~",
        Path.home().name: "<user>",
        platform.node(): "<host>",
    }
    for number, project in enumerate((status or {}).get("projects", ()), 1):
        names[project["root"]] = f"<project {number}>"
        names[project["name"]] = f"<project {number}>"
        names[Path(project["root"]).name] = f"<project {number}>"
    return dict(sorted(names.items(), key=lambda item: -len(item[0])))


def hide_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text without private names, and without paths of which nothing is known."""
    for name, other in names.items():
        if "/" in name:
            text = text.replace(name, other)
        elif len(name) >= _NAME_BYTES:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", other, text)
    return _PATH.sub(_hide_path, text)


def _hide_path(found: re.Match[str]) -> str:
    if found[0].startswith(OPEN_FOLDERS):
        return found[0]
    return "<path>"
