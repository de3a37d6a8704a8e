"""``flashgrep hook``: the searches that an agent types in a shell, answered with the index's help."""
