"""The protocol's two eras: revisions with a handshake, and the stateless one whose requests say all by themselves.

Facts of the wire after the specification's revisions 2024-11-05 to 2025-11-25, and 2026-07-28.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from flashgrep.errors import InvalidParams, UnsupportedVersion

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NEWEST_LEGACY: Final = LEGACY[-1]
MODERN: Final = ("2026-07-28",)
PREFIX: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = PREFIX + "protocolVersion"
CAPABILITIES_KEY: Final = PREFIX + "clientCapabilities"
LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
SERVER_KEY: Final = PREFIX + "serverInfo"


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a request of the stateless revision says of its sender."""

    version: str
    capabilities: dict[str, Any]
    log_level: str | None


def negotiated(requested: Any) -> str:
    """Return the revision a handshake ends with: the one asked for if we have it, else our newest with a handshake."""
    return requested if requested in LEGACY else NEWEST_LEGACY


def envelope_of(params: Mapping[str, Any]) -> Envelope | None:
    """Return the envelope of a stateless request, None for a request of the handshake's era.

    Raises:
        InvalidParams: the envelope is there and incomplete.
        UnsupportedVersion: it names a revision we do not speak.

    """
    meta = params.get("_meta")
    if not isinstance(meta, dict) or VERSION_KEY not in meta:
        return None
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise InvalidParams(f"_meta: {VERSION_KEY} must be a string", field=VERSION_KEY)
    capabilities = meta.get(CAPABILITIES_KEY)
    if not isinstance(capabilities, dict):
        raise InvalidParams(f"_meta: {CAPABILITIES_KEY}: an object is required", field=CAPABILITIES_KEY)
    if version not in MODERN:
        raise UnsupportedVersion(f"unsupported protocol version: {version}", supported=list(MODERN), requested=version)
    level = meta.get(LOG_LEVEL_KEY)
    return Envelope(version, capabilities, level if isinstance(level, str) else None)


def dressed(result: dict[str, Any], server: Mapping[str, str], keep_ms: int | None) -> dict[str, Any]:
    """Return a result as the stateless revision has it; ``keep_ms``: how long a client may keep it, None: not at all.

    What is listed depends on who asks (its toolsets, its projects), so nothing may be kept for others.
    """
    dressed = {**result, "resultType": "complete", "_meta": {**result.get("_meta", {}), SERVER_KEY: dict(server)}}
    if keep_ms is not None:
        dressed |= {"ttlMs": keep_ms, "cacheScope": "private"}
    return dressed
