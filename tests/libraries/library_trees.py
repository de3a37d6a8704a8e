"""Projects with libraries as their tools lay them out."""

from pathlib import Path

PACKAGES = ".venv/lib/python3.12/site-packages"

LOOMS: dict[str, str | bytes] = {
    f"{PACKAGES}/looms/__init__.py": "from .frames import Loom as Loom\nfrom .frames import weave\n",
    f"{PACKAGES}/looms/frames.py": (
        'class Loom:\n    """Weaves."""\n\n    def turn(self, yarn: int) -> int:\n        """Turn once."""\n'
        "        return yarn\n\n\ndef weave(yarn):\n    return Loom().turn(yarn)\n"
    ),
    f"{PACKAGES}/py_looms-2.1.dist-info/METADATA": "Name: py-looms\nVersion: 2.1\n",
    f"{PACKAGES}/py_looms-2.1.dist-info/RECORD": "looms/__init__.py,,\nlooms/frames.py,,\npy_looms-2.1.dist-info/METADATA,,\n",
    ".venv/pyvenv.cfg": "home = /nowhere/bin\nversion = 3.12.1\n",
}
USER = "import looms\nfrom looms import Loom\n\nlooms.weave(1)\nLoom().turn(2)\n"


def write_tree(root: Path, files: dict[str, str | bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
