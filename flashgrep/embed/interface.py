"""What an embedder is: texts to unit vectors, and the meaning of a similarity."""

from collections.abc import Sequence
from typing import Protocol, Self

from flashgrep.embed.scale import Scale
from flashgrep.embed.vectors import Vectors


class Embedder(Protocol):
    """One model of one provider. Vectors of different names must never be compared."""

    @property
    def name(self) -> str:
        """Provider and model, unique for the vectors it makes, as ``ollama:nomic-embed-text``."""

    @property
    def dims(self) -> int:
        """Width of a vector."""

    @property
    def batch(self) -> int:
        """Texts worth passing in one call."""

    @property
    def max_chars(self) -> int:
        """Characters of a text that are looked at; what follows is ignored."""

    def embed_code(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each piece of code or prose that is to be found.

        Raises:
            ProviderUnavailable: the provider does not answer, or not sensibly.

        """

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each question.

        Raises:
            ProviderUnavailable: as ``embed_code``.

        """

    def confidence(self, similarity: float) -> float:
        """Map the cosine of a question and a text to 0-1, as ``scale.Scale`` describes."""

    def with_scale(self, scale: Scale) -> Self:
        """Return the same model, whose ``confidence`` goes by unrelated pairs that were measured."""
