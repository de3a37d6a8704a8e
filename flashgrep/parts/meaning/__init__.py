"""Search by meaning: chunks, words, vectors, and their one ranking."""
