"""The recipe of the embedded default: from permissively licensed packages to ``flashgrep/embed/data/static.npz``."""
