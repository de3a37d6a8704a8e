"""Occurrences of symbols that a compiler told, imported by the user from a file in the SCIP format.

https://github.com/sourcegraph/scip; a file counts only as long as its text is the one that was imported.
"""
