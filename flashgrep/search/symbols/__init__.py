"""Symbols by name, outlines and maps of them, and the way from a position to definitions and uses."""
