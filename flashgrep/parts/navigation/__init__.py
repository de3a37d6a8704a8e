"""Navigation: what a name means where it is used; callers, references, research, other sources of symbols."""
