"""Texts to vectors: one interface, the embedded default, and providers beside it."""

from flashgrep.embed.interface import Embedder
from flashgrep.embed.providers import available, open_embedder
from flashgrep.embed.scale import Scale, unrelated
from flashgrep.embed.vectors import Vectors

__all__ = ["Embedder", "Scale", "Vectors", "available", "open_embedder", "unrelated"]
