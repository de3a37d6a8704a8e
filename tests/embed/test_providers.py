"""Opening embedders by name: what works, what does not and why, and who may choose."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from flashgrep.base import config
from flashgrep.base.config import Embedding, Settings
from flashgrep.base.errors import BadSetting, ProviderUnavailable
from flashgrep.base.project_settings import with_project
from flashgrep.parts.meaning.embed import available, open_embedder, providers, static
from tests.embed.models import DIMS, write_model
from tests.support.embed_server import DIMS as API_DIMS
from tests.support.embed_server import Api, Reply, serving

ABSENT = "http://127.0.0.1:9"  # nobody may listen there (RFC 863's port, closed on every system today)


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a small model in the place of the embedded default."""
    path = write_model(tmp_path / "static.npz")
    monkeypatch.setattr(static, "DATA", path)
    return path


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the usual places of local servers away, so that none of this machine is met."""
    for name in ("ollama", "lmstudio", "vllm", "llamacpp"):
        usual = providers.APIS[name]
        monkeypatch.setitem(
            providers.APIS,
            name,
            usual._replace(service=usual.service._replace(url=ABSENT)),
        )


def settings(**embedding: Any) -> Settings:
    return Settings(
        embedding=Embedding(**{"attempts": 1, "timeout_seconds": 5, **embedding})
    )


def refusal(
    wanted: Settings, environ: dict[str, str] | None = None, provider: str = ""
) -> dict[str, Any]:
    with pytest.raises(ProviderUnavailable) as caught:
        open_embedder(wanted, environ or {}, provider)
    told = caught.value.to_object()
    assert told["code"] == -32000
    assert told["data"]["reason"] == "provider_unavailable"
    return {"message": told["message"], **told["data"]}


def test_the_default_is_embedded_and_needs_nothing() -> None:
    found = open_embedder(Settings(), {})
    assert (found.name[:17], found.dims) == ("flashgrep-static-", DIMS)
    assert found.embed_queries(["read file"]).shape == (1, DIMS)
    assert available(Settings(), {}) == ["static"]


def test_a_default_that_is_missing_is_reported_and_not_listed(model: Path) -> None:
    model.unlink()
    told = refusal(Settings())
    assert "missing" in told["message"]
    assert told["available"] == []


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("openai", "/v1"),
        ("lmstudio", "/v1"),
        ("vllm", "/v1"),
        ("llamacpp", "/v1"),
        ("ollama", ""),
    ],
)
def test_every_api_opens_with_its_model_and_width(
    api: Api, provider: str, path: str
) -> None:
    wanted = settings(provider=provider, url=api.url + path, model="my-model")
    found = open_embedder(wanted, {})
    assert (found.name, found.dims) == (f"{provider}:my-model", API_DIMS)
    assert np.linalg.norm(found.embed_code(["one", "two"]), axis=1) == pytest.approx(
        [1, 1]
    )
    assert provider in available(wanted, {})


def test_voyage_opens_with_its_usual_model_and_its_key(api: Api) -> None:
    found = open_embedder(
        settings(provider="voyage", url=api.url + "/v1", batch=7),
        {"VOYAGE_API_KEY": " pa-key\n"},
    )
    assert (found.name, found.batch) == ("voyage:voyage-code-3", 7)
    assert api.requests[0].headers["Authorization"] == "Bearer pa-key"


def test_a_server_with_one_model_needs_no_name(api: Api) -> None:
    assert (
        open_embedder(settings(provider="vllm", url=api.url + "/v1"), {}).name
        == "vllm:only-embed"
    )
    api.models = ["chat-a", "my-embedding", "chat-b"]
    assert (
        open_embedder(settings(provider="lmstudio", url=api.url + "/v1"), {}).name
        == "lmstudio:my-embedding"
    )


@pytest.mark.parametrize("models", [["a", "b"], ["embed-a", "embed-b"], []])
def test_a_server_with_several_models_asks_for_a_name(
    api: Api, models: list[str]
) -> None:
    api.models = models
    told = refusal(settings(provider="vllm", url=api.url + "/v1"))
    assert "set embedding.model" in told["message"]
    assert all(name in told["message"] for name in models)


def test_a_width_is_asked_for_and_checked(api: Api) -> None:
    assert (
        open_embedder(settings(provider="openai", url=api.url + "/v1", dims=3), {}).dims
        == 3
    )
    told = refusal(settings(provider="ollama", url=api.url, dims=3))
    assert "vectors have 6 dimensions instead of 3" in told["message"]


@pytest.mark.parametrize(
    ("provider", "problem"),
    [
        ("ollama", "no connection"),
        ("lmstudio", "no connection"),
        ("vllm", "no connection"),
        ("llamacpp", "no connection"),
        ("openai", "openai needs a key: set OPENAI_API_KEY"),
        ("voyage", "voyage needs a key: set VOYAGE_API_KEY"),
        ("local", "absolute path of a model folder"),
        ("swift-embeddings", "library for Swift"),
        ("no-such", "unknown embedding provider: no-such"),
    ],
)
def test_provider_unavailable(provider: str, problem: str) -> None:
    told = refusal(settings(), provider=provider)
    assert problem in told["message"]
    assert told["provider"] == provider
    assert told["available"] == ["static"]


def test_mlx_is_for_apple_silicon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    assert refusal(settings(provider="mlx"))["message"] == "mlx needs Apple silicon"


@pytest.mark.parametrize(
    "provider", get_args(Embedding.model_fields["provider"].annotation)
)
def test_every_provider_of_the_settings_is_known(provider: str) -> None:
    if provider not in available(settings(), {}):
        assert (
            "unknown embedding provider"
            not in refusal(settings(), provider=provider)["message"]
        )


def test_those_with_a_key_are_available_without_being_asked() -> None:
    assert available(Settings(), {"OPENAI_API_KEY": "a", "VOYAGE_API_KEY": " "}) == [
        "static",
        "openai",
    ]
    assert refusal(settings(), {"VOYAGE_API_KEY": "b"}, "openai")["available"] == [
        "static",
        "voyage",
    ]


def test_a_local_server_is_available_while_it_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        usual = providers.APIS["ollama"]
        monkeypatch.setitem(
            providers.APIS,
            "ollama",
            usual._replace(service=usual.service._replace(url=url)),
        )
        assert available(Settings(), {}) == ["static", "ollama"]
        assert available(settings(provider="vllm", url=url + "/v1"), {}) == [
            "static",
            "ollama",
            "vllm",
        ]
    assert available(Settings(), {}) == ["static"]


def test_a_provider_named_in_a_call_does_not_get_the_place_of_the_configured_one(
    api: Api,
) -> None:
    wanted = settings(provider="openai", url=api.url + "/v1", model="my-model")
    told = refusal(wanted, provider="ollama")
    assert told["message"].startswith(f"ollama at {ABSENT}: no connection")
    assert told["available"] == ["static", "openai"]
    assert not api.requests


def test_an_unavailable_provider_leaves_itself_out_of_the_list(api: Api) -> None:
    api.next.append(Reply(status=403, body={}))
    assert refusal(
        settings(provider="openai", url=api.url, model="m"), {"OPENAI_API_KEY": "k"}
    )["available"] == ["static"]


@pytest.mark.parametrize("section", ["embedding", "reranking", "refinement"])
@pytest.mark.parametrize(
    "line",
    [
        'provider = "openai"',
        'url = "http://127.0.0.1:1"',
        'model = "m"',
        "timeout_seconds = 9",
    ],
)
def test_a_repository_cannot_choose_where_code_is_sent(
    tmp_path: Path, section: str, line: str
) -> None:
    (tmp_path / ".flashgrep").mkdir()
    (tmp_path / ".flashgrep" / "config.toml").write_text(f"[{section}]\n{line}\n")
    loaded = with_project(config.load(), tmp_path)
    assert loaded.settings == config.Settings()
    assert "cannot be set by a project" in loaded.warnings[0]


@pytest.mark.parametrize(
    "url",
    [
        "http://user:key@host/v1",
        "ftp://host",
        "https://host/v1?key=1",
        "//host",
        "http://",
        "a b",
    ],
)
def test_a_url_is_a_base_without_credentials(tmp_path: Path, url: str) -> None:
    (tmp_path / "config.toml").write_text(f'[embedding]\nurl = "{url}"\n')
    with pytest.raises(BadSetting, match=r"embedding\.url"):
        config.load(user_file=tmp_path / "config.toml")


def test_the_environment_chooses_a_provider() -> None:
    environ = {
        "FLASHGREP_EMBEDDING_PROVIDER": "ollama",
        "FLASHGREP_EMBEDDING_URL": "http://localhost:11434",
    }
    assert config.load(environ=environ).settings.embedding.provider == "ollama"
