"""The page for browsers: who may look, its files, and what it downloads. Imported with the HTTP wire."""
