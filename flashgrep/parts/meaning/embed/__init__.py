"""Embedding texts: one interface, the embedded default model, and other providers."""

from flashgrep.parts.meaning.embed.interface import Embedder, Scale, Vectors
from flashgrep.parts.meaning.embed.providers import available, open_embedder

__all__ = ["Embedder", "Scale", "Vectors", "available", "open_embedder"]
