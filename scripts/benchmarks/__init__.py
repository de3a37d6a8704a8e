"""What scripts/bench measures, and how it is told."""
