"""How near to the heart of a project a file is, by its path: sources, then tests, generated and vendored files."""

import re
from functools import lru_cache

TIERS = 4
SOURCE, TEST, GENERATED, VENDORED = range(TIERS)

_FOLDERS = (
    (VENDORED, rb"vendor|third[_-]?party|node_modules|bower_components|site-packages|external"),
    (GENERATED, rb"dist|build|gen|generated|__generated__"),
    (TEST, rb"tests?|testing|testdata|specs?|__tests__|selftests?|fixtures?|mocks?|e2e|examples?|benchmarks?"),
)
_FOLDER_TIERS = [(tier, re.compile(rb"(?:^|/)(?:%s)(?:/|\Z)" % names, re.IGNORECASE)) for tier, names in _FOLDERS]
_GENERATED = re.compile(
    rb"[._-](?:min|bundle|generated|gen|pb)\.[a-z]+$|_pb2(?:_grpc)?\.pyi?$|\.(?:lock|map|svg|snap)$"
    rb"|^(?:package-lock\.json|yarn\.lock|go\.sum)$",
    re.IGNORECASE,
)
_TEST = re.compile(rb"^test_|[._-](?:test|tests|spec|mock)\.[a-z]+$|(?-i:[a-z]Tests?)\.[a-z]+$", re.IGNORECASE)


def tier_of(path: bytes) -> int:
    """Return SOURCE, TEST, GENERATED or VENDORED, the best first."""
    folder, _, name = path.rpartition(b"/")
    tier = _tier_of_folder(folder)
    if tier >= GENERATED:
        return tier
    if _GENERATED.search(name):
        return GENERATED
    return TEST if tier or _TEST.search(name) else SOURCE


@lru_cache(maxsize=16)  # a project's paths come sorted
def _tier_of_folder(folder: bytes) -> int:
    return next((tier for tier, names in _FOLDER_TIERS if names.search(folder)), SOURCE)
