"""The sample project for tests of the editor plugins."""

import subprocess
from pathlib import Path

FILES = {
    "src/parcel.py": '''\
def find_parcel(number):
    """Look up a parcel by its number."""
    return PARCELS[number]


PARCELS = {}
''',
    "src/use.py": """\
from parcel import find_parcel

def main():
    print(find_parcel(7))
""",
}


def make_parcels(folder: Path) -> None:
    """Create the project in an empty folder, as a git work tree."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
