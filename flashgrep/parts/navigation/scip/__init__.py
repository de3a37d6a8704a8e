"""Compiler-accurate occurrences of symbols, imported by the user from a file in the SCIP format.

https://github.com/sourcegraph/scip; the data of a source file is used only as long as its text is the imported one.
"""
