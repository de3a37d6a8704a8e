"""Embedders over HTTP against a real server: shapes, batches, and every way it can fail."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import http_api
from flashgrep.parts.meaning.embed.http_api import Endpoint, RetryPolicy
from flashgrep.parts.meaning.embed.interface import ModelEmbedder
from flashgrep.parts.meaning.embed.providers import (
    OLLAMA,
    OPENAI,
    VOYAGE,
    Dialect,
    RemoteModel,
)
from tests.support.embed_server import (
    DIMS,
    Api,
    Reply,
    openai_reply,
    serving,
    unit,
    vector,
)

QUICK = RetryPolicy(timeout=5, attempts=4, first_wait=0.001, longest_wait=2)
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with serving() as server:
        yield server


def remote(
    api: Api, dialect: Dialect, retries: RetryPolicy, model: str, dims: int
) -> RemoteModel:
    endpoint = Endpoint(
        provider="openai",
        url=api.url + "/v1",
        key=KEY,
        key_name="OPENAI_API_KEY",
        retries=retries,
        others=("static",),
    )
    return RemoteModel(endpoint=endpoint, dialect=dialect, model=model, dims=dims)


def embedder(
    api: Api,
    dialect: Dialect = OPENAI,
    retries: RetryPolicy = QUICK,
    model: str = "some-model",
    dims: int = 0,
    **options: Any,
) -> ModelEmbedder:
    return remote(api, dialect, retries, model, dims).embedder(
        dims or DIMS, **{"batch": 32, **options}
    )


def failure(model: ModelEmbedder, texts: list[str] | None = None) -> str:
    with pytest.raises(ProviderUnavailable) as caught:
        model.embed_code(texts or ["one", "two"])
    told = caught.value.to_object()
    assert told["code"] == -32000
    assert told["data"] == {
        "reason": "provider_unavailable",
        "available": ["static"],
        "provider": "openai",
    }
    assert KEY not in json.dumps(told)
    return told["message"]


def test_openai_is_asked_in_its_shape_and_its_rows_come_back_at_unit_length(
    api: Api,
) -> None:
    rows = embedder(api).embed_code(["def one(): pass", "two"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [
        pytest.approx(unit("def one(): pass")),
        pytest.approx(unit("two")),
    ]
    (request,) = api.requests
    assert (request.method, request.path) == ("POST", "/v1/embeddings")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "input": ["def one(): pass", "two"],
        "encoding_format": "float",
    }


def test_ollama_is_asked_in_its_shape(api: Api) -> None:
    rows = embedder(api, OLLAMA).embed_queries(["where", "how"])
    assert rows.tolist() == [pytest.approx(unit("where")), pytest.approx(unit("how"))]
    assert api.requests[0].path == "/v1/api/embed"
    assert api.requests[0].body == {
        "model": "some-model",
        "input": ["where", "how"],
        "truncate": True,
    }


def test_voyage_learns_which_texts_are_questions(api: Api) -> None:
    model = embedder(api, VOYAGE, dims=4)
    model.embed_queries(["where"])
    model.embed_code(["def where(): pass"])
    assert [request.body["input_type"] for request in api.requests] == [
        "query",
        "document",
    ]
    assert api.requests[0].body["output_dimension"] == 4


def test_a_width_that_was_asked_for_is_part_of_the_name(api: Api) -> None:
    model = embedder(api, dims=4)
    assert model.embed_code(["one"])[0].tolist() == pytest.approx(unit("one", 4))
    assert api.requests[0].body["dimensions"] == 4
    assert model.name == "openai:some-model:4"
    assert embedder(api).name == "openai:some-model"


def test_models_trained_with_prefixes_get_them(api: Api) -> None:
    model = embedder(api, OLLAMA, model="nomic-embed-text:v1.5")
    model.embed_queries(["where"])
    model.embed_code(["def f(): pass"])
    assert api.texts == [["search_query: where"], ["search_document: def f(): pass"]]


def test_rows_are_put_in_the_order_of_their_indexes(api: Api) -> None:
    api.next.append(lambda request: openai_reply(request, lambda rows: rows[::-1]))
    texts = ["one", "two", "three"]
    assert embedder(api).embed_code(texts).tolist() == [
        pytest.approx(unit(text)) for text in texts
    ]


@pytest.mark.slow
@given(texts=st.lists(st.text(max_size=8), max_size=12), batch=st.integers(1, 5))
def test_batching_equals_one_by_one(shared: Api, texts: list[str], batch: int) -> None:
    model = embedder(shared, batch=batch)
    shared.requests.clear()
    together = model.embed_code(texts)
    assert all(len(part) <= batch for part in shared.texts)
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, model.embed_code([text])[0])


def test_blank_texts_are_not_sent_and_give_zero_rows(api: Api) -> None:
    rows = embedder(api).embed_code(["", "one", " \n\t"])
    assert api.texts == [["one"]]
    assert np.linalg.norm(rows, axis=1) == pytest.approx([0, 1, 0])
    assert embedder(api).embed_code([]).shape == (0, DIMS)
    assert len(api.requests) == 1


def test_texts_are_cut_and_requests_bounded_in_characters(api: Api) -> None:
    embedder(api, batch=1000, max_chars=50_000).embed_code(["x" * 60_000] * 9)
    assert [[len(text) for text in part] for part in api.texts] == [
        [50_000] * 4,
        [50_000] * 4,
        [50_000],
    ]


def test_a_vector_of_zeros_stays_one_and_large_numbers_do_not_overflow(
    api: Api,
) -> None:
    rows = [
        {"index": 0, "embedding": [0.0] * DIMS},
        {"index": 1, "embedding": [1e300] + [0.0] * (DIMS - 1)},
    ]
    api.next.append(Reply({"data": rows}))
    assert embedder(api).embed_code(["one", "two"]).tolist() == [
        [0] * DIMS,
        [1] + [0] * (DIMS - 1),
    ]


def test_a_probe_learns_the_width(api: Api) -> None:
    assert remote(api, OPENAI, QUICK, "some-model", 0).probe() == DIMS


def test_threads_may_share_an_embedder(api: Api) -> None:
    model = embedder(api, batch=3)
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda n: model.embed_code([f"{n}-{k}" for k in range(7)]), range(8)
            )
        )
    for n, rows in enumerate(found):
        assert rows.tolist() == [pytest.approx(unit(f"{n}-{k}")) for k in range(7)]


def test_confidence_is_by_assumption(api: Api) -> None:
    assert embedder(api).confidence(0.42) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "fault",
    [
        Reply(
            status=429,
            body={"error": {"message": "slow down"}},
            headers={"Retry-After": "0"},
        ),
        Reply(
            status=429,
            body={},
            headers={
                "Retry-After": format_datetime(datetime.now(UTC) - timedelta(hours=1))
            },
        ),
        Reply(status=503, headers={"Retry-After": "soon"}),
        Reply(status=500, raw=b"<html>oops</html>"),
        Reply(raw=b'{"data": [{"index": 0,', headers={"Content-Length": "900"}),
        Reply(raw=b""),
    ],
)
def test_a_passing_fault_is_tried_again(api: Api, fault: Reply) -> None:
    api.next.extend([fault, fault])
    assert embedder(api).embed_code(["one"])[0].tolist() == pytest.approx(unit("one"))
    assert len(api.requests) == 3


def test_a_wait_that_was_asked_for_is_kept(api: Api) -> None:
    api.next.append(Reply(status=429, headers={"Retry-After": "1"}))
    start = time.monotonic()
    embedder(api).embed_code(["one"])
    assert time.monotonic() - start >= 1


def test_a_wait_that_is_too_long_is_not_kept(api: Api) -> None:
    api.next.append(Reply(status=429, headers={"Retry-After": "3600"}))
    assert "it asks for a wait of 3600 s" in failure(embedder(api))
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("text", "least", "most"), [("7", 7, 7), ("", 0, 0), ("-3", 0, 0), ("1e3", 0, 0)]
)
def test_retry_after_is_read(text: str, least: float, most: float) -> None:
    assert least <= http_api._parse_retry_after(text) <= most


def test_retry_after_may_be_a_date() -> None:
    later = datetime.now(UTC) + timedelta(seconds=100)
    assert 90 < http_api._parse_retry_after(format_datetime(later, usegmt=True)) <= 100


def test_lasting_trouble_is_given_up_after_all_attempts(api: Api) -> None:
    api.next.extend(
        [Reply(status=500, body={"error": {"message": "no\nmemory \x1b[31m left"}})] * 9
    )
    assert (
        failure(embedder(api))
        == f"openai at {api.url}/v1: status 500: no memory [31m left"
    )
    assert len(api.requests) == 4


def test_questions_are_given_up_sooner_since_somebody_waits(api: Api) -> None:
    api.next.extend([Reply(status=500)] * 9)
    with pytest.raises(ProviderUnavailable):
        embedder(api).embed_queries(["where"])
    assert len(api.requests) == 2


def test_waits_grow_up_to_their_bound(api: Api) -> None:
    api.next.extend([Reply(status=500)] * 9)
    start = time.monotonic()
    failure(
        embedder(
            api,
            retries=RetryPolicy(
                timeout=5, attempts=4, first_wait=0.1, longest_wait=0.15
            ),
        )
    )
    assert 0.2 <= time.monotonic() - start < 10  # at least 0.05 + 0.075 + 0.075


def test_a_server_that_does_not_listen_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = Endpoint(
            provider="openai",
            url=f"http://127.0.0.1:{taken.getsockname()[1]}",
            retries=QUICK,
        )
        with pytest.raises(ProviderUnavailable, match=r"no connection: .*refused"):
            place.request("/embeddings", {})


@pytest.mark.parametrize("drip", [-1, 0.05])
def test_an_answer_that_takes_too_long_is_given_up(api: Api, drip: float) -> None:
    api.next.append(Reply(raw=b" " * 1000, drip=drip))
    start = time.monotonic()
    assert "no response within 0.3 s" in failure(
        embedder(api, retries=RetryPolicy(timeout=0.3, attempts=1))
    )
    assert time.monotonic() - start < 10  # all of it would take 50


def test_an_answer_without_end_is_given_up(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_api, "LARGEST_ANSWER", 100_000)
    api.next.append(Reply(raw=b" " * 10_000_000))
    assert "too large" in failure(embedder(api, retries=RetryPolicy(attempts=1)))


GOOD = vector("any")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"data": [{"index": 0, "embedding": GOOD}]}, "1 vectors for 2 texts"),
        (
            {"data": [{"index": n, "embedding": GOOD} for n in range(3)]},
            "3 vectors for 2 texts",
        ),
        ({"data": [{"index": 0, "embedding": GOOD}] * 2}, "not one for each"),
        (
            {
                "data": [
                    {"index": 1, "embedding": GOOD},
                    {"index": 2, "embedding": GOOD},
                ]
            },
            "not one for each",
        ),
        (
            {
                "data": [
                    {"index": 0, "embedding": GOOD},
                    {"index": 1, "embedding": GOOD[1:]},
                ]
            },
            "not a list of",
        ),
        (
            {"data": [{"index": n, "embedding": GOOD[1:]} for n in range(2)]},
            "5 dimensions instead of 6",
        ),
        (
            {"data": [{"index": n, "embedding": [None] * DIMS} for n in range(2)]},
            "not finite",
        ),
        ({"data": [{"index": n, "embedding": []} for n in range(2)]}, "not a list of"),
        (
            {"data": [{"index": n, "embedding": "AAAA"} for n in range(2)]},
            "not a list of",
        ),
        (
            {
                "data": [
                    {"index": "a", "embedding": GOOD},
                    {"index": 1, "embedding": GOOD},
                ]
            },
            "not a list of",
        ),
        ({"data": []}, "vectors for 2 texts|not a list of"),
        ({"data": None}, "not a list of"),
        ({"error": "no such model"}, "not a list of"),
        ([1, 2], "not a list of"),
        ("text", "not a list of"),
        (None, "not a list of"),
    ],
)
def test_an_answer_of_another_shape_is_refused(
    api: Api, body: object, problem: str
) -> None:
    api.next.append(Reply(body))
    with pytest.raises(ProviderUnavailable, match=problem):
        embedder(api).embed_code(["one", "two"])
    assert len(api.requests) == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(api: Api, number: str) -> None:
    api.next.extend(
        [
            Reply(
                raw=f'{{"data": [{{"index": 0, "embedding": [{number},1,1,1,1,1]}}]}}'.encode()
            )
        ]
        * 9
    )
    told = failure(embedder(api), ["one"])
    assert "not JSON" in told or "not finite" in told


@pytest.mark.parametrize(
    "body", [{"embeddings": [GOOD]}, {"embeddings": [GOOD] * 3}, {"embeddings": 3}, {}]
)
def test_ollama_is_held_to_its_shape(api: Api, body: object) -> None:
    api.next.append(Reply(body))
    failure(embedder(api, OLLAMA))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(api: Api, status: int) -> None:
    with serving() as elsewhere:
        api.next.append(
            Reply(status=status, headers={"Location": elsewhere.url + "/v1/embeddings"})
        )
        assert f"redirects to {elsewhere.url.removeprefix('http://')}" in failure(
            embedder(api)
        )
        assert not elsewhere.requests


def test_an_error_that_repeats_the_key_is_reported_without_it(api: Api) -> None:
    api.next.append(
        Reply(status=400, body={"error": {"message": f"Incorrect key {KEY} given"}})
    )
    assert failure(embedder(api)).endswith("status 400: Incorrect key *** given")
    assert KEY not in repr(embedder(api))


def test_a_refused_key_is_named_by_its_variable(api: Api) -> None:
    api.next.append(Reply(status=401, body={"error": {"message": "bad key"}}))
    assert failure(embedder(api)).endswith(
        "it rejects the key in OPENAI_API_KEY (status 401)"
    )
    assert len(api.requests) == 1


@pytest.mark.parametrize("key", ["a\nX-Other: b", "schlüssel"])
def test_a_key_that_could_write_headers_is_refused(key: str) -> None:
    with pytest.raises(ProviderUnavailable, match="MY_KEY has characters") as caught:
        Endpoint(
            provider="openai", url="https://example.invalid", key=key, key_name="MY_KEY"
        )
    assert key not in caught.value.message


def test_a_key_does_not_travel_unencrypted() -> None:
    with pytest.raises(ProviderUnavailable, match="MY_KEY would be sent unencrypted"):
        Endpoint(
            provider="openai",
            url="http://example.invalid/v1",
            key=KEY,
            key_name="MY_KEY",
        )


def test_an_invalid_port_is_reported() -> None:
    with pytest.raises(ProviderUnavailable, match="port"):
        Endpoint(provider="openai", url="http://localhost:99999")


def test_proxies_of_the_environment_are_not_used(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        embedder(api).embed_code(["one"])
        assert not proxy.requests


def test_a_server_without_encryption_is_reported_where_encryption_is_meant(
    api: Api,
) -> None:
    place = Endpoint(
        provider="openai",
        url=api.url.replace("http:", "https:"),
        retries=RetryPolicy(attempts=1),
    )
    with pytest.raises(ProviderUnavailable, match="no connection"):
        place.request("/embeddings", {})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    kind = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(
        serialization.Encoding.PEM, kind, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[Api]:
    with serving(certificate) as server:
        yield server


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: Api) -> None:
    assert "its certificate is not trusted" in failure(embedder(secure))
    assert not secure.requests


def test_a_server_that_is_trusted_is_spoken_to_in_secret(
    secure: Api, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    http_api._trust.cache_clear()
    try:
        assert embedder(secure).embed_code(["one"])[0].tolist() == pytest.approx(
            unit("one")
        )
    finally:
        http_api._trust.cache_clear()
