"""The command line: registry to commands, answers to text."""
