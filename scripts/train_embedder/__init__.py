"""The training of the embedded default model: from permissive packages to ``parts/meaning/embed/data/static.npz``."""
