"""What models were served on this machine, and which of their searches could have been."""

from flashgrep.api.part import Part
from flashgrep.parts.gain.counters import COUNTERS, FILE, Counters
from flashgrep.project.catalogue import Catalogue


def open_counters(host: Catalogue) -> Counters:
    """Return the counters of a daemon, kept in its state folder."""
    return Counters(host.state_dir / FILE)


PART = Part(
    name="gain",
    summary="What models were served on this machine, and which of their searches could have been.",
    requires=("hook", "hosts"),
    commands={
        "gain": "flashgrep.parts.gain.gain_command:gain",
        "discover": "flashgrep.parts.gain.discover_command:discover",
    },
    host_services={COUNTERS: open_counters},
)
