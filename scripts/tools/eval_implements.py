"""Compare our implementations of interfaces with those of a compiler's type checker.

    scripts/eval_symbols implements FOLDER=TRUTH.jsonl …      TRUTH: printed by implements.go or
                                                              implements.cjs of scripts/tools/oracles

Precision counts the edges that lead to an interface, grouped by resolution. A type counts as found if it is in the
answer at depth 3, since subtypes of an implementing type are reported as its subtypes.
"""

import collections
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from flashgrep.base.languages import language_of
from flashgrep.parts.navigation.research.research_walk import Research
from flashgrep.parts.navigation.resolution.conformance import is_interface
from scripts.tools.eval_uses import Folder, Place, Told, draw, place_of

MOST: Final = 300
"""Interfaces compared per folder."""
SHOWN: Final = 24
"""Differences printed per folder."""


@dataclass
class Truth:
    """A type checker's results for a folder."""

    interfaces: dict[Place, str] = field(default_factory=dict)
    implementing: dict[Place, set[Place]] = field(default_factory=dict)
    """The types that implement each interface."""
    unjudged: set[Place] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    def add(self, row: dict[str, Any]) -> None:
        """Add a line of the checker's output."""
        if "unjudged" in row:
            self.unjudged.add(tuple(row["unjudged"]))
        elif "read" in row:
            self.read.add(row["read"])
        else:
            place: Place = tuple(row["interface"])
            self.interfaces[place] = row["name"]
            self.implementing.setdefault(place, set()).update(
                [tuple(row["type"])] if "type" in row else []
            )


def compare_implements(folder: Path, truth_file: Path) -> Told:
    """Print a folder's recall and precision over all pairs of type and interface; return counts by confidence."""
    source, truth = Folder(folder), Truth()
    for line in truth_file.read_text().splitlines():
        truth.add(json.loads(line))
    told: Told = collections.defaultdict(lambda: [0, 0])
    counts, examples = collections.Counter[str](), list[str]()
    started = time.process_time()
    asked = draw([one for one in truth.interfaces if one not in truth.unjudged])[:MOST]
    for place in asked:
        right = truth.implementing[place]
        research = Research(f"what implements {truth.interfaces[place]}", 3)
        while research.advance(source):
            pass
        counts["cut"] += bool(research.left_out)
        nodes = research.graph.nodes
        found = {place_of(research, key) for key, node in nodes.items() if node.hop}
        for edge in research.graph.edges:
            if edge.target not in nodes or place_of(research, edge.target) != place:
                continue
            one, user = nodes[edge.source].definition, place_of(research, edge.source)
            if is_interface(one) or user in truth.unjudged or user[0] not in truth.read:
                continue
            is_right = user in right
            counts["right" if is_right else "wrong"] += 1
            language = language_of(os.fsencode(user[0])).name
            reason = (edge.resolution.confidence, edge.resolution.how, language)
            told[reason][is_right] += 1
            if not is_right:
                examples.append(
                    f"ours {one.qualified} {user} of {truth.interfaces[place]} {place}, {edge.resolution}"
                )
        counts["found"] += len(right & found)
        counts["lost"] += len(right - found)
        examples += [
            f"lost {one} of {truth.interfaces[place]} {place}" for one in right - found
        ]
    spent = 1000 * (time.process_time() - started) / max(1, len(asked))
    recall = counts["found"] / max(1, counts["found"] + counts["lost"])
    precision = counts["right"] / max(1, counts["right"] + counts["wrong"])
    print(
        f"{folder.name}: {len(asked)} interfaces, recall {recall:.3f} precision {precision:.3f} {dict(counts)}"
    )
    print(f"      {spent:.0f} ms each")
    print(
        "".join(f"      {example}\n" for example in draw(examples)[:SHOWN]),
        end="",
        flush=True,
    )
    return told
