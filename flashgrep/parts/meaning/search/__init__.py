"""Search by meaning: chunks found by words and by vectors, merged into one ranking."""
