"""Symbols: definitions and references by tree-sitter, outlines, a map of a project."""
