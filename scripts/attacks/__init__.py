"""Attacks on a real daemon: each module is one kind, each kind counts its inputs and lists what went wrong."""
