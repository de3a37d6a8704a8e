"""The embedder that a caller chooses for a project."""

import anyio.to_thread

from flashgrep.api.host import Host
from flashgrep.base.config import Embedding, EmbeddingProvider
from flashgrep.base.errors import ProviderUnavailable
from flashgrep.parts.meaning.embed import available, open_embedder
from flashgrep.parts.meaning.embed.providers import HOSTED


async def choose_embedding(host: Host, provider: EmbeddingProvider) -> Embedding:
    """Return the settings of a provider.

    Raises:
        ProviderUnavailable: it does not work here; ``data.available`` names those that do.

    """
    settings = host.settings
    if provider in HOSTED and provider != settings.embedding.provider:
        providers = await anyio.to_thread.run_sync(available, settings, host.environ)
        here = [name for name in providers if name not in HOSTED]
        message = f"{provider} would send the code to another machine: only the user's own settings can select it"
        raise ProviderUnavailable(message, available=here, provider=provider)
    # The model and URL of another provider do not apply.
    section = Embedding(provider=provider)
    if provider == settings.embedding.provider:
        section = settings.embedding
    chosen = settings.model_copy(update={"embedding": section})
    await anyio.to_thread.run_sync(open_embedder, chosen, host.environ)
    return section
