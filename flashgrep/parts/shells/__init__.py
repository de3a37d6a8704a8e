"""Completion of commands and options in shells, and the manual page: files generated from the declarations."""
