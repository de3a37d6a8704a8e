"""``fgrep model``: the user's own models of meaning: added, measured on the user's repository, and chosen."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from flashgrep.base import config
from flashgrep.base.errors import FlashgrepError, ProviderUnavailable
from flashgrep.base.paths import config_file, describe_failure
from flashgrep.cli.daemon_client import (
    fail,
    find_user_paths,
    show_name,
)
from flashgrep.cli.stopping import stop_daemon
from flashgrep.files.openat import RootFolder
from flashgrep.methods.text import escape_controls
from flashgrep.parts.git.program import Git
from flashgrep.parts.git.repository import Repository
from flashgrep.parts.meaning.embed.model_folder import (
    ModelFolder,
    read_model_folder,
)
from flashgrep.parts.meaning.embed.models import open_reranker
from flashgrep.parts.models.choosing import (
    LOCAL,
    RERANKED,
    choose_default,
    choose_model,
    find_overruling,
    forget_model,
    is_chosen,
)
from flashgrep.parts.models.comparing import (
    FEWEST,
    Measured,
    Revisions,
    Way,
    choose_size,
    count_questions,
    difference,
    format_comparison,
    measure,
)
from flashgrep.parts.models.history import (
    HistoryQuestion,
    draw_questions,
)
from flashgrep.parts.models.hub import (
    NAME,
    Hub,
)
from flashgrep.parts.models.model_store import (
    ModelStore,
    StoredModel,
)
from flashgrep.parts.models.probe import probe_model
from flashgrep.rpc.connect import start_daemon

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Add models of your own for search by meaning, measure them on your repository, and choose one.",
)
DEFAULT = "default"
MIB = 1 << 20
WINDOW = 16
"""Commits to draw a question from: neighbours have most files in common, and these are indexed once."""
DRAWING_SECONDS = 60.0
"""For drawing the questions: revisions of a large repository take a second to list."""

Name = Annotated[
    str,
    typer.Argument(help="A model's name as list prints it, or how it begins."),
]


@app.command()
def add(
    source: Annotated[
        str,
        typer.Argument(
            help="A model's folder, or its name on a hub, such as minishlab/potion-code-16M."
        ),
    ],
    *,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Fetch a named model without asking."),
    ] = False,
    project: Annotated[
        Path,
        typer.Option(help="Any folder of the repository to measure on."),
    ] = Path(),
    questions: Annotated[
        int,
        typer.Option(min=0, max=400, help="Most questions to measure with; 0: none."),
    ] = 40,
    use: Annotated[
        bool,
        typer.Option("--use/--no-use", help="Use it from now on; else only keep it."),
    ] = True,
) -> None:
    """Add a model from a folder or by its name, measure it on this repository, and use it from now on.

    Model2Vec and static models of sentence-transformers (safetensors or npz), encoders in ONNX and cross-encoders in
    ONNX are read, each with its tokenizer.json. A model that is worse here than the default is kept and not used.
    Nothing is fetched unless you gave a name and said yes.
    """
    with _failing_cleanly():
        store = ModelStore(Path(find_user_paths().state))
        measured = None
        # One command at a time measures, too: it takes minutes of every core.
        with store.making() as fresh:
            model = _add(
                store,
                fresh,
                source,
                is_agreed=yes,
            )
            # Kept before it is measured, which may be interrupted.
            if questions:
                measured = _measure(
                    store,
                    model,
                    fresh / "measuring",
                    project,
                    questions,
                )
            if measured is not None and not measured.problem:
                model = replace(model, measured=_summarise(measured, project))
                store.describe(model)
        if not use:
            return
        doubt = _find_doubt(measured)
        if doubt:
            typer.echo(
                f"not used, since it {doubt}; to use it all the same: fgrep model use {model.name}"
            )
        else:
            _use(store, model)


@app.command("list")
def list_models() -> None:
    """List the models that were added, with what was measured; * marks what is used."""
    with _failing_cleanly():
        store = ModelStore(Path(find_user_paths().state))
        settings = _load_settings()
        # A provider of the settings that is no folder has no mark at all.
        marks = "*" if settings.embedding.provider == "static" else " "
        typer.echo(f"{marks} {DEFAULT}: built in")
        for model in store.list_models():
            mark = "*" if is_chosen(settings, store.path_of(model.name)) else " "
            _show(f"{mark} {model.name}: {_describe(model)}")
            if model.measured:
                _show(f"    {model.measured}")


@app.command()
def use(name: Name) -> None:
    """Use a model from now on; `default`: what is built in, and no reranker."""
    with _failing_cleanly():
        if name == DEFAULT:
            choose_default(os.environ)
            _restart()
            typer.echo("the built-in model is used")
            return
        store = ModelStore(Path(find_user_paths().state))
        _use(store, store.find(name))


@app.command()
def remove(name: Name) -> None:
    """Remove a model; if it is used, the built-in one is used from now on."""
    with _failing_cleanly():
        store = ModelStore(Path(find_user_paths().state))
        model = store.find(name)
        # Settings that name a folder which is gone would leave words only.
        is_used = forget_model(os.environ, store.path_of(model.name))
        store.remove(model)
        if is_used:
            _restart()
        typer.echo(f"removed {model.name}")


def _find_doubt(measured: Measured | None) -> str:
    """Return why a model should not be used; empty: nothing speaks against it, or nothing was measured."""
    if measured is None:
        return ""
    if measured.problem:
        return "could not be measured"
    if difference(measured.ranks)[2] < 0:
        return "is worse here"
    return ""


def _add(
    store: ModelStore,
    fresh: Path,
    source: str,
    *,
    is_agreed: bool,
) -> StoredModel:
    """Return a model that was read, tried and copied into the store."""
    folder = Path(source).absolute()
    # A home of nobody stays as it is.
    with suppress(RuntimeError):
        folder = Path(source).expanduser().absolute()
    name = _name_folder(folder)
    if folder.is_file():
        fail(
            f"{source}: a file; give the folder it is in with its tokenizer.json (unpack a package first)"
        )
    if not folder.is_dir():
        # A folder is never taken for a name, nor a name for a path.
        if not NAME.fullmatch(source):
            fail(
                f"{source}: neither a folder nor a name such as minishlab/potion-code-16M"
            )
        folder = fresh / "fetched"
        name = source.rpartition("/")[2]
        _fetch(source, folder, is_agreed=is_agreed)
    described = read_model_folder(folder)
    if described.kind == "transformers":
        fail(
            f"{source}: only weights of PyTorch: export it first: optimum-cli export onnx --model {source} FOLDER"
        )
    # What is tried is what is kept: a graph may need a file that is not copied.
    copied = replace(described, path=store.copy(described, fresh))
    try:
        probed = probe_model(copied)
    except ProviderUnavailable as error:
        problem = error.message.replace(str(copied.path), str(folder))
        raise ProviderUnavailable(problem) from None
    size = copied.size()
    model = StoredModel(
        name=store.take(copied, name),
        kind=described.kind,
        dims=probed.dims,
        milliseconds=probed.milliseconds,
        size=size,
        licence=described.licence,
        source=source,
        added=time.time(),
    )
    store.describe(model)
    _show(f"{model.name}: {_describe(model)}")
    typer.echo(f"{probed.milliseconds:g} ms a chunk; {_describe_input(described)}")
    return model


def _fetch(name: str, folder: Path, *, is_agreed: bool) -> None:
    """Fetch a named model after saying what and from where; ends the command if the user does not agree."""
    hub = Hub(os.environ)
    _agree(f"list the files of {name} at {hub.address}?", is_agreed=is_agreed)
    listing = hub.list_files(name)
    files = listing.choose()
    total = sum(file.size for file in files.values()) / MIB
    _show(f"{name} at {hub.address}, revision {listing.revision}")
    _show(f"licence: {listing.licence or 'not stated'}")
    for inner, file in files.items():
        typer.echo(f"  {file.size:>14,} bytes  {inner}")
    _agree(f"fetch {len(files)} files, {total:,.1f} MiB?", is_agreed=is_agreed)
    folder.mkdir()
    hub.fetch(listing, files, folder, _tell)


def _agree(question: str, *, is_agreed: bool) -> None:
    if is_agreed:
        return
    # A script that asks nobody must say so itself.
    if not sys.stdin.isatty():
        fail(f"{question} nothing was fetched: say --yes")
    if not typer.confirm(question):
        raise SystemExit(1)


def _measure(
    store: ModelStore,
    model: StoredModel,
    base: Path,
    project: Path,
    most: int,
) -> Measured | None:
    """Measure a model against the default on the history of a repository; None: it cannot be."""
    folder = RootFolder(os.fsencode(project.resolve()))
    repository = None
    try:
        repository = Repository.open(Git.find(folder, os.environ))
        _tell("drawing questions from the history")
        questions = draw_questions(
            repository,
            most,
            WINDOW * most,
            time.monotonic() + DRAWING_SECONDS,
        )
        if len(questions) < FEWEST:
            _show(
                f"not measured: the history of {project.resolve()} gives {len(questions)} of {most} questions;"
                f" {FEWEST} are needed"
            )
            return None
        measured = _measure_by(
            store,
            model,
            base,
            repository,
            questions,
        )
    except FlashgrepError as error:
        _show(f"not measured: {error.message}")
        return None
    finally:
        if repository is not None:
            repository.close()
    if measured.problem:
        _show(f"not measured: {measured.problem}")
        return measured
    _show(
        f"{count_questions(measured)} questions from the history of {project.resolve()}, over {measured.files} files:"
    )
    for line in format_comparison(measured):
        typer.echo(line)
    return measured


def _measure_by(
    store: ModelStore,
    model: StoredModel,
    base: Path,
    repository: Repository,
    questions: list[HistoryQuestion],
) -> Measured:
    # The default first: its questions bound those of the slower model.
    ways = [Way(DEFAULT, config.Embedding()), _make_way(store, model)]
    # Below a folder that only the user reads, as indexes of code should be.
    base.mkdir(mode=0o700)
    most = choose_size(model.milliseconds)
    revisions = Revisions(repository, questions, most)
    run = partial(
        measure,
        revisions,
        ways,
        os.environ,
        base,
        _tell,
    )
    try:
        return anyio.run(run)
    except ExceptionGroup as group:
        # What happens while a project is open comes in the group of its tasks.
        raise group.exceptions[0] from None


def _make_way(store: ModelStore, model: StoredModel) -> Way:
    folder = str(store.path_of(model.name))
    if model.kind != "cross-encoder":
        embedding = config.Embedding(provider=LOCAL, model=folder)
        return Way(model.name, embedding)
    reranking = config.Reranking(
        provider=LOCAL,
        model=folder,
        top=RERANKED,
    )
    reranker = open_reranker(config.Settings(reranking=reranking), os.environ)
    return Way(model.name, config.Embedding(), reranker)


def _use(store: ModelStore, model: StoredModel) -> None:
    choose_model(os.environ, model.kind, store.path_of(model.name))
    # The file is right all the same: the variable may be gone tomorrow.
    overruling = find_overruling(os.environ)
    if overruling:
        typer.echo(
            f"{', '.join(overruling)} in the environment counts more",
            err=True,
        )
    _restart()
    if model.kind == "cross-encoder":
        typer.echo(f"{model.name} orders the first {RERANKED} results from now on")
    else:
        typer.echo(
            f"{model.name} is used from now on; while a project's vectors are made anew, the former ones answer"
        )


def _restart() -> None:
    """Have a running daemon read the settings again."""
    # One that does not run reads them when it is started.
    if stop_daemon():
        start_daemon(find_user_paths(), os.environ)


def _load_settings() -> config.Settings:
    return config.load(
        user_file=Path(config_file(os.environ)), environ=os.environ
    ).settings


def _describe(model: StoredModel) -> str:
    width = ""
    if model.dims:
        width = f", {model.dims} dimensions"
    licence = model.licence or "licence not stated"
    size = f"{model.size / MIB:,.1f} MiB"
    return f"{model.kind}{width}, {size}, {licence}, from {model.source}"


def _describe_input(model: ModelFolder) -> str:
    parts = [f"reads {model.max_tokens} tokens"]
    if model.kind == "encoder":
        parts.append(f"pooling {model.pooling}")
    parts += [
        f"prompt for a {role}: {text!r}" for role, text in model.prompts.items() if text
    ]
    return ", ".join(parts)


def _summarise(measured: Measured, project: Path) -> str:
    mean, low, high = difference(measured.ranks)
    count = count_questions(measured)
    gain = f"{mean:+.3f} ({low:+.3f} to {high:+.3f}) in reciprocal rank"
    return f"{gain} to the default, {count} questions, {project.resolve()}"


def _name_folder(folder: Path) -> str:
    # A snapshot of a cache is named by its revision.
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name
    return folder.resolve().name


def _show(text: str) -> None:
    """Print a line with names, licences and texts that others wrote."""
    typer.echo(show_name(text))


def _tell(text: str) -> None:
    """Show what is under way, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


@contextmanager
def _failing_cleanly() -> Iterator[None]:
    try:
        yield
    except FlashgrepError as error:
        fail(escape_controls(error.message))
    except BrokenPipeError:  # of standard output: its reader has had enough
        raise
    except OSError as error:
        fail(escape_controls(describe_failure(error)))
