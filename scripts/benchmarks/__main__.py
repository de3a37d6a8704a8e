"""Measure flashgrep on a tree, against ripgrep in the same run: scripts/bench --help."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio

from scripts.benchmarks import (
    changes,
    editing,
    mcp,
    meaning,
    peer_report,
    peer_results,
    peers,
    queries,
    report,
    sizes,
    symbols,
)
from scripts.benchmarks.machine import (
    Machine,
    TreeFacts,
    described,
    machine,
    tree_facts,
)
from scripts.benchmarks.peer_install import Installer
from scripts.benchmarks.private import Private, private_daemon
from scripts.benchmarks.rows import Row
from scripts.benchmarks.targets import Targets, targets_for
from tests.rpc.harness import dispatch_overhead

RG = Path(sys.executable).with_name("rg")


def main() -> int:
    """Run as the command line says."""
    options = _options()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # the daemon is ended and the copies removed then, too
    base = Path(tempfile.mkdtemp(prefix="fgbench", dir=options.work))
    try:
        if options.sizes:
            _compare_sizes(options, base)
        elif not options.only_peers:
            root = _copy(options.path.resolve(), base / options.path.resolve().name)
            _run(options, base, root)
        if options.peers or options.only_peers:
            _compare(options, base / "peers")
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    here = Path(__file__).parent.parent.parent
    parser.add_argument(
        "path",
        type=Path,
        nargs="?",
        default=here,
        help="tree to measure on; it is copied first",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="also measure other search tools, if installable",
    )
    parser.add_argument(
        "--only-peers",
        action="store_true",
        help="measure only the other tools and ripgrep",
    )
    parser.add_argument(
        "--sizes",
        action="store_true",
        help="measure only `fgrep rg` against ripgrep, on parts of the tree, before, during and after indexing",
    )
    parser.add_argument(
        "--programs",
        type=Path,
        help="folder with programs of tools that are in no registry",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "flashgrep-peers",
        help="folder in which other tools are installed once (default: %(default)s)",
    )
    parser.add_argument(
        "--save",
        action="store_true",
        help="keep the result under scripts/bench-results",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="skip the branch switch and the minute of idling",
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="folder for copies of the tree (default: the system's temporary one)",
    )
    parser.add_argument(
        "--remark",
        default="",
        help="stored with the result, e.g. whether the machine was shared",
    )
    return parser.parse_args()


def _copy(source: Path, target: Path) -> Path:
    """Copy a tree without the tools' own folders."""
    ignored = shutil.ignore_patterns(".git", ".flashgrep", ".venv")
    shutil.copytree(source, target, symlinks=True, ignore=ignored)
    return target


def _run(options: argparse.Namespace, base: Path, root: Path) -> None:
    about, tree, targets = machine(RG), tree_facts(root, RG), targets_for(root, RG)
    print(targets)
    with private_daemon(base / "state") as daemon:
        _tell(options, about, tree, _measured(options, daemon, base, root, targets))


def _compare_sizes(options: argparse.Namespace, base: Path) -> None:
    """Measure ``fgrep rg`` on parts of the tree, and print its table."""
    root = options.path.resolve()
    about, tree = machine(RG), tree_facts(root, RG)
    rows = sizes.measure(base, root, RG, targets_for(root, RG))
    _tell(options, about, tree, rows, report.FOLDER / "sizes")


def _tell(
    options: argparse.Namespace,
    about: Machine,
    tree: TreeFacts,
    rows: Iterable[Row],
    folder: Path = report.FOLDER,
) -> None:
    """Print rows as they are measured, and save them if wanted."""
    print(f"machine: {described(about)}\ntree: {described(tree)}\n\n{report.head()}")
    measured: list[Row] = []
    for row in rows:
        print(report.line(row), flush=True)
        measured.append(row)
    if options.save:
        remark = f"{options.remark} Load average at the end: {os.getloadavg()[0]:.1f}.".strip()
        print(report.save(about, tree, measured, remark, folder))


def _measured(
    options: argparse.Namespace,
    daemon: Private,
    base: Path,
    root: Path,
    targets: Targets,
) -> Iterator[Row]:
    yield from changes.indexing(daemon, root, RG, tree_facts(root, RG), targets)
    yield from meaning.building(daemon, root, tree_facts(root, RG), targets)
    yield from meaning.measure(daemon)
    yield from queries.measure(daemon, RG, targets)
    yield from symbols.measure(daemon, targets)
    yield symbols.parsing(root)
    yield from editing.measure(base, time.process_time)
    yield from _mcp(root)
    client = daemon.client()
    touched = root / changes.pick_file(client, targets)
    client.close()
    yield changes.touched(daemon, touched, 30 if options.quick else 200)
    yield from changes.crowd(daemon, targets)
    cost = anyio.run(dispatch_overhead)
    yield Row(
        "dispatch overhead",
        value=cost["jsonrpcserver_us"],
        unit="µs",
        note=f"plain {cost['plain_us']:.0f} µs",
    )
    yield from changes.idling(daemon, 5 if options.quick else changes.IDLE_SECONDS)
    if not options.quick:
        yield from changes.branch_switch(daemon, root, RG)


def _mcp(root: Path) -> Iterator[Row]:
    """Yield the rows of MCP, measured on a small part of the tree, indexed by a separate daemon."""
    small = next(
        (
            folder
            for folder in (root / "kernel", root / "flashgrep", root)
            if folder.is_dir()
        ),
        root,
    )
    for name, value in mcp.measure(small).items():
        yield Row(
            f"MCP {name}",
            value=value,
            bars=[mcp.BARS[name]] if name in mcp.BARS else [],
        )


def _compare(options: argparse.Namespace, base: Path) -> None:
    """Measure other tools and ours, and print the tables."""
    root = options.path.resolve()
    comparison = peer_results.Comparison(
        datetime.now(UTC).date().isoformat(),
        machine(RG),
        tree_facts(root, RG),
        options.remark,
    )
    installer = Installer(options.cache.resolve(), options.programs, RG.parent)
    bench = peers.Bench(base, root, RG, installer)
    peers.measure(comparison, bench, targets_for(root, RG))
    print("\n".join(peer_report.lines(comparison)))
    if options.save:
        print(peer_results.save(comparison))


if __name__ == "__main__":
    sys.exit(main())
