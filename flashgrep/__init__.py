"""flashgrep: one local daemon that answers every question about code."""

__version__ = "0.1.0"
__all__ = ["__version__"]
