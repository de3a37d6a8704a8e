"""Specifications in OpenSpec's Markdown: reading, finding and validating them; knows no wire."""
