"""Attack a separate daemon, and print what was tried and what went wrong."""

import argparse
import random
import sys
import time
from collections.abc import Callable

from scripts.attacks.doors import attack_doors
from scripts.attacks.faults import attack_by_damage, attack_by_kills
from scripts.attacks.floods import attack_by_floods
from scripts.attacks.http_door import attack_over_http
from scripts.attacks.messages import attack_with_mutations, attack_with_types
from scripts.attacks.odd_messages import attack_relays
from scripts.attacks.paths import attack_by_races, attack_paths
from scripts.attacks.repositories import attack_from_repositories
from scripts.attacks.strangers import attack_as_stranger
from scripts.attacks.target import Outcome, Target, target

KINDS: dict[str, Callable[[Target], Outcome]] = {
    "paths": attack_paths,
    "races": attack_by_races,
    "doors": attack_doors,
    "messages": attack_with_mutations,
    "types": attack_with_types,
    "relays": attack_relays,
    "http": attack_over_http,
    "floods": attack_by_floods,
    "strangers": attack_as_stranger,
    "repositories": attack_from_repositories,
    "kills": attack_by_kills,
    "damage": attack_by_damage,
}
MOST_SHOWN = 10


def main() -> int:
    """Run the requested kinds; return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    parser.add_argument(
        "kinds",
        nargs="*",
        metavar="KIND",
        help=f"one of: {', '.join(KINDS)} (default: all)",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=600.0,
        help="time for all kinds together (default: 600)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=random.SystemRandom().randrange(1 << 32),
        help="to repeat a run",
    )
    options = parser.parse_args()
    unknown = set(options.kinds) - KINDS.keys()
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    chosen = options.kinds or list(KINDS)
    print(f"seed {options.seed}", flush=True)
    tried = wrong = 0
    for kind in chosen:
        with target(options.seed) as made:
            made.until = time.monotonic() + options.seconds / len(chosen)
            outcome = KINDS[kind](made)
        waits = sorted(outcome.polite_ms)
        polite = (
            f", polite client p50 {waits[len(waits) // 2]:.0f} ms, most {waits[-1]:.0f} ms"
            if waits
            else ""
        )
        print(
            f"{kind}: {outcome.tried} tried, {len(outcome.wrong)} wrong{polite}",
            flush=True,
        )
        for line in outcome.wrong[:MOST_SHOWN]:
            print(f"  {line}", flush=True)
        tried, wrong = tried + outcome.tried, wrong + len(outcome.wrong)
    print(f"{tried} inputs tried, {wrong} went wrong", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
