"""Where flashgrep itself is found."""

from typing import Final

REPOSITORY: Final = "https://github.com/flashgrep/flashgrep"
