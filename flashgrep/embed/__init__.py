"""Texts to vectors: one interface, the embedded default, and providers beside it."""
