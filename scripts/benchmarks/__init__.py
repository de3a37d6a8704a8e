"""The measurements of scripts/bench, and their report."""
