"""Language servers that the user has installed and enabled: queried for definitions; their answers are verified."""
