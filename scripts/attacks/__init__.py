"""Attacks on a real daemon: each kind of attack counts its inputs and lists failures."""
