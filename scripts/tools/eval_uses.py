"""Compare our callers and uses with those of a compiler's checker: recall and precision by kind and by hop.

    scripts/eval_symbols uses FOLDER=TRUTH.jsonl …      TRUTH: the output of a program of scripts/tools/oracles

Two uses are equal if they are on the same line and refer to a definition on the same line. Not counted are lines that
the checker did not analyse, and uses missing from an answer that says that it is cut (counted as ``cut``).
``overridden`` edges lead to methods that may run instead of the one that the checker names, so they have their own row.
"""

import collections
import json
import os
import random
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from flashgrep.base.languages import language_of
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.navigation.resolution.exports import find_overloads
from flashgrep.parts.navigation.resolution.resolver import OVERRIDDEN
from flashgrep.parts.navigation.resolution.symbol_graph import PROVEN, Definition
from flashgrep.parts.symbols.parse.model import CALLABLE_KINDS
from flashgrep.parts.symbols.symbol_source import ReadResult, parse_file

TARGETS: Final = 40
"""Definitions per kind whose uses are compared."""
SHOWN, SHOWN_EACH = 24, 3
"""Differences printed per kind, and per definition."""
KINDS: Final = (
    ("function", True), ("method", True), ("class", True), ("class", False), ("type", False), ("constant", False),
)  # fmt: skip
"""The comparisons: a kind of definition, and whether its calls or all its uses are compared."""
Place = tuple[str, int]
Uses = dict[tuple[Any, ...], set[Place]]
"""Uses by definition: (kind, file, line, name, container)."""
Told = dict[tuple[float, str, str], list[int]]
"""Numbers of wrong and right edges, by confidence, reason and language."""
MOST_OFF: Final = 0.05
"""Greatest allowed difference between a confidence and the share of right edges."""
LEAST_PROVEN: Final = 0.98
"""The least share of right edges among those told as proven."""
FEW: Final = 20
"""Fewer edges than this give no meaningful share."""


class Folder:
    """A folder as a source of symbols; each file is read once."""

    imported = None
    libraries = None

    def __init__(self, root: Path) -> None:
        found = (
            path
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        )
        kept = (path for path in found if "node_modules" not in path.parts)
        self.texts = {bytes(path.relative_to(root)): path.read_bytes() for path in kept}

    def paths(self) -> list[bytes]:
        """Return all files."""
        return list(self.texts)

    def candidates(self, name: str, *, fold: bool, whole: bool = False) -> list[bytes]:  # noqa: ARG002 - a source's signature
        """Return the files with the text."""
        return [path for path, text in self.texts.items() if name.encode() in text]

    def defining(self, name: str, *, prefix: bool) -> list[bytes] | None:
        """Return None: nothing is stored."""

    def names(self, start: str, limit: int) -> list[str]:  # noqa: ARG002 - a source's signature
        """Return nothing: nothing is stored."""
        return []

    def open(
        self, path: bytes, _holds: Callable[[bytes], bool] | None = None, /
    ) -> ReadResult:
        """Return a file's symbols."""
        return parse_file(path, self.texts[path]) if path in self.texts else None

    def read(self, path: bytes) -> bytes | None:
        """Return a file's text."""
        return self.texts.get(path)

    def has(self, path: bytes) -> bool:
        """Return whether there is a file."""
        return path in self.texts

    def version(self, _path: bytes) -> None:
        """Return None: versions are not known without reading."""

    @property
    def by_paths(self) -> dict[Hashable, Any]:
        """Return nothing: nothing is cached."""
        return {}


def compare_uses(folder: Path, truth_file: Path) -> Told:
    """Print a folder's recall and precision by kind, and the share of right edges at each hop."""
    lines = truth_file.read_text().splitlines()
    return compare_rows(folder, map(json.loads, lines), is_whole=True)


def compare_rows(
    folder: Path, rows: Iterable[dict[str, Any]], *, is_whole: bool
) -> Told:
    """Compare with rows of a checker; ``is_whole``: they are of all definitions, so that hops can be followed."""
    source, truth = Folder(folder), {True: Uses(), False: Uses()}
    meant: dict[Place, set[Place]] = collections.defaultdict(set)
    unseen: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)
    for row in rows:
        if "unseen" in row:
            file, first, last = row["unseen"]
            unseen[file].append((first, last))
            continue
        key = (row["kind"], *row["target"], row["name"], row["container"])
        truth[False].setdefault(key, set()).add(tuple(row["use"]))
        if row["call"]:
            truth[True].setdefault(key, set()).add(tuple(row["use"]))
            meant[tuple(row["use"])].add(tuple(row["target"]))

    read = {Path(use[0]).suffix for uses in truth[False].values() for use in uses}

    def is_seen(place: Place) -> bool:
        return Path(place[0]).suffix in read and not any(
            first <= place[1] <= last for first, last in unseen.get(place[0], ())
        )

    told: Told = collections.defaultdict(lambda: [0, 0])
    for kind, is_call in KINDS:
        for key, (wrong, right) in compare_kind(
            folder.name, source, kind, truth, is_seen, is_call=is_call
        ).items():
            told[key] = [told[key][0] + wrong, told[key][1] + right]
    if is_whole:
        compare_hops(folder.name, source, list(truth[True]), meant, is_seen)
    return told


def compare_hops(
    title: str,
    source: Folder,
    called: list[tuple[Any, ...]],
    meant: dict[Place, set[Place]],
    is_seen: Callable[[Place], bool],
) -> None:
    """Print the share of right edges at each hop of chains of callers; ``meant``: the definitions called at a place."""
    hops = collections.Counter[tuple[int, bool]]()
    for target in draw([key for key in called if key[0] in {"function", "method"}])[
        : TARGETS // 2
    ]:
        research = ask(source, target, "callers", 3)
        for edge in research.graph.edges:
            place = (edge.path.decode(), edge.line)
            node = research.graph.nodes.get(edge.target)
            # Not judged: edges to a target that the checker did not analyse or does not
            # tell of, and overrides.
            if node is None or edge.resolution.how == OVERRIDDEN:
                continue
            is_known = is_seen(place_of_definition(node.definition))
            if not is_known or not is_judged(node.definition):
                continue
            # Overloads count as one of them.
            family = find_overloads(node.definition)
            places = {place_of_definition(overload) for overload in family}
            is_right = not places.isdisjoint(meant[place])
            # A line may have a call that is known and one that is not.
            if is_right or is_seen(place):
                hops[node.hop + 1, is_right] += 1
    for hop in (1, 2, 3):
        count = hops[hop, True] + hops[hop, False]
        print(
            f"{title} hop {hop}: {hops[hop, True] / max(1, count):.3f} right of {count} edges"
        )


CONSTRUCTORS = {"constructor", "__init__"}
"""Names of constructors that are methods to their grammars."""


def is_judged(definition: Definition) -> bool:
    """Whether checkers tell of a definition: a constructor's calls are its type's, and functions in others are local."""
    if definition.index < 0:
        return True
    around = definition.symbols.parent(definition.index)
    is_local = around >= 0 and definition.symbols.kind(around) in CALLABLE_KINDS
    is_constructor = definition.kind == "constructor" or definition.name in CONSTRUCTORS
    return not is_constructor and not is_local


def report_told(each: list[Told]) -> int:
    """Print the share of right edges for each reason and language, as a table; return 1 if one is off."""
    total: Told = collections.defaultdict(lambda: [0, 0])
    for told in each:
        for key, (wrong, right) in told.items():
            total[key] = [total[key][0] + wrong, total[key][1] + right]
    languages = sorted({language for _, _, language in total})
    reasons = sorted({key[:2] for key in total}, reverse=True)
    print(f"| | | {' | '.join(languages)} |")
    print("|---" * (len(languages) + 2) + "|")
    for confidence, how in reasons:
        cells = [
            _describe_share(confidence, how, total.get((confidence, how, language)))
            for language in languages
        ]
        print(f"| {confidence} | {how} | {' | '.join(cells)} |")
    return int(
        any(
            _is_off(confidence, how, *total[confidence, how, language])
            for confidence, how, language in total
        )
    )


def _describe_share(confidence: float, how: str, counts: list[int] | None) -> str:
    if counts is None:
        return ""
    wrong, right = counts
    mark = " (off)" * _is_off(confidence, how, wrong, right)
    return f"{right / (wrong + right):.3f} of {wrong + right}{mark}"


def _is_off(confidence: float, how: str, wrong: int, right: int) -> bool:
    """Whether a share is too far from its confidence; not of overrides, as the checker names the overridden method."""
    if wrong + right < FEW or how == OVERRIDDEN:
        return False
    share = right / (wrong + right)
    if confidence >= PROVEN:
        return share < LEAST_PROVEN
    return round(abs(share - confidence), 3) > MOST_OFF


def compare_kind(
    title: str,
    source: Folder,
    kind: str,
    both: Mapping[bool, Uses],
    is_seen: Callable[[Place], bool],
    *,
    is_call: bool,
) -> Told:
    """Print the figures of one kind of definition, and some differences; return counts by confidence.

    ``both``: calls (True), and all uses (False).
    """
    truth, uses = both[is_call], both[False]
    # A constructor's calls are its type's.
    targets = draw(
        [key for key in truth if key[0] == kind and key[3] not in CONSTRUCTORS]
    )[:TARGETS]
    # Overloads are queried together: a use of any of them counts.
    overloads = collections.defaultdict(list)
    for key in uses:
        overloads[key[:2], key[3:]].append(key)
    told: Told = collections.defaultdict(lambda: [0, 0])
    counts = collections.Counter[str]()
    examples = []
    started = time.process_time()
    for target in targets:
        (_, file, line, name, _), alike = target, overloads[target[:2], target[3:]]
        true = set[Place]().union(*(truth.get(key, ()) for key in alike))
        # A method passed as a value is no call for the checker, but not an error of
        # ours.
        named = set[Place]().union(*(uses[key] for key in alike)) - true
        lines = {(file, key[2]) for key in alike}
        research = ask(source, target, "callers" if is_call else "usages", 1)
        mine = {
            place: edge.resolution
            for edge in research.graph.edges
            if edge.kind != "imports"
            and edge.target in research.graph.nodes
            and place_of(research, edge.target) in lines
            and (edge.path.decode(), edge.line) not in named
            if (place := (edge.path.decode(), edge.line)) in true or is_seen(place)
        }
        lost = true - mine.keys()
        # Overrides have their own row.
        ours = {place for place in mine.keys() - true if mine[place].how != OVERRIDDEN}
        counts.update(
            both=len(mine.keys() & true), ours=len(ours), unsure=research.unsure.total()
        )
        counts["cut" if research.left_out else "theirs"] += len(lost)
        for place, resolution in mine.items():
            language = language_of(os.fsencode(place[0])).name
            reason = (round(resolution.confidence, 2), resolution.how, language)
            told[reason][place in true] += 1
        for side, places in (("ours", ours), ("lost", lost)):
            examples += [
                f"{side} {name}@{file}:{line} at {place[0]}:{place[1]} {mine.get(place, '')}"
                for place in sorted(places)[:SHOWN_EACH]
            ]
    if targets:
        spent = 1000 * (time.process_time() - started) / len(targets)
        print(
            f"{title} {kind} {'called' if is_call else 'used'}: {figures(counts)}, {spent:.0f} ms each"
        )
        print(
            "".join(f"      {example}\n" for example in draw(examples)[:SHOWN]),
            end="",
            flush=True,
        )
    return told


def draw(found: list[Any]) -> list[Any]:
    """Return a list in pseudo-random order, the same every time."""
    drawn = sorted(found)
    random.Random(11).shuffle(drawn)  # noqa: S311 - a sample
    return drawn


def ask(source: Folder, target: tuple[Any, ...], what: str, depth: int) -> Research:
    """Run a research question about the callers or uses of a definition."""
    *_, name, container = target
    research = Research(f"{what} of {container}{'.' * bool(container)}{name}", depth)
    while research.advance(source):
        pass
    return research


def place_of(research: Research, key: tuple[bytes, int]) -> Place:
    """Return the file and line of a node's name."""
    return place_of_definition(research.graph.nodes[key].definition)


def place_of_definition(definition: Definition) -> Place:
    """Return the file and line of a definition's name."""
    path, offset = definition.key
    return path.decode(), definition.symbols.lines.line(max(0, offset))


def figures(counts: collections.Counter[str]) -> str:
    """Return counts as recall and precision."""
    recall = counts["both"] / max(1, counts["both"] + counts["theirs"])
    precision = counts["both"] / max(1, counts["both"] + counts["ours"])
    return f"recall {recall:.3f} precision {precision:.3f} {dict(counts)}"
