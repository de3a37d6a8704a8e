"""Tables of chunks, words and vectors."""
