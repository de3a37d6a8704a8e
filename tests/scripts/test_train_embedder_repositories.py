"""The repositories whose commits are learnt from: none of them may be asked about."""

from typing import Final

from scripts.benchmarks.search.history import list_commits
from scripts.train_embedder import packages
from scripts.train_embedder.commits import REPOSITORIES

LISTED: Final = packages.read(REPOSITORIES)

HOMES: Final = {
    *(
        "akka",
        "akka.net",
        "capacitor",
        "cli",
        "coroutines",
        "dancer2",
        "elixir",
        "jinja",
        "kotlinx.coroutines",
    ),
    *("lighttpd1.4", "mojo", "okio", "os-lib", "penlight", "query", "wai", "xterm.js"),
    *("circe", "exposed", "messagepack-csharp", "phoenix", "rxswift"),
}
"""Names that evaluated packages have at home, where their registries call them otherwise; and a port of one."""


def test_each_has_a_commit_and_a_permissive_licence() -> None:
    assert len(LISTED) > 100
    assert [
        each
        for each in LISTED
        if len(each.version) != 40 or not packages.permissive(each.licence)
    ] == []


def test_none_is_evaluated_on() -> None:
    short = [each._replace(name=each.name.rpartition("/")[2]) for each in LISTED]
    assert packages.clashes(short, packages.kept_out()) == []
    assert HOMES & {each.name.lower() for each in short} == set()


def test_nothing_is_asked_about_a_history_that_was_learnt_from() -> None:
    learnt = {each.key for each in packages.read(packages.ALLOW)}
    learnt |= {packages.plain_name(each.name.rpartition("/")[2]) for each in LISTED}
    asked = {packages.plain_name(name.rpartition("/")[2]) for name in list_commits()}
    assert len(asked) > 30
    assert learnt & asked == set()
