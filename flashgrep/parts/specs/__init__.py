"""Specifications in OpenSpec's Markdown: parsing, searching and validating them; independent of any wire."""
