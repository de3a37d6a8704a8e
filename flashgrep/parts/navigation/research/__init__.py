"""Questions about relations, answered hop by hop: callers, uses, implementations, imports."""
