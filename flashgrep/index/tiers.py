"""How near to the heart of a project a file is, by its path: sources, then tests, generated and vendored files."""

import re

TIERS = 4
SOURCE, TEST, GENERATED, VENDORED = range(TIERS)

_VENDORED = re.compile(
    rb"(?:^|/)(?:vendor|third[_-]?party|node_modules|bower_components|site-packages|external)/", re.IGNORECASE
)
_GENERATED = re.compile(
    rb"(?:^|/)(?:dist|build|gen|generated|__generated__)/|[._-](?:min|bundle|generated|gen|pb)\.[a-z]+$"
    rb"|_pb2(?:_grpc)?\.pyi?$"
    rb"|\.(?:lock|map|svg|snap)$|(?:^|/)(?:package-lock\.json|yarn\.lock|go\.sum)$",
    re.IGNORECASE,
)
_TEST = re.compile(
    rb"(?:^|/)(?:tests?|testing|testdata|specs?|__tests__|selftests?|fixtures?|mocks?|e2e|examples?|benchmarks?)/"
    rb"|(?:^|/)test_[^/]*$|[._-](?:test|tests|spec|mock)\.[a-z]+$|(?-i:[a-z]Tests?)\.[a-z]+$",
    re.IGNORECASE,
)


def tier_of(path: bytes) -> int:
    """Return SOURCE, TEST, GENERATED or VENDORED, the best first."""
    if _VENDORED.search(path):
        return VENDORED
    if _GENERATED.search(path):
        return GENERATED
    return TEST if _TEST.search(path) else SOURCE
