"""The training of the embedded default model: from permissively licensed packages to ``embed/data/static.npz``."""
