"""Builds flashgrep.mcpb, the bundle that Claude Desktop installs with a double click: the manifest and our sources.

The bundle asks for the folder to search, since Claude Desktop has no open folder. The host's uv installs the packages
in pyproject.toml (https://github.com/modelcontextprotocol/mcpb, manifest 0.4, server type "uv").
"""

import argparse
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from flashgrep import __version__

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("flashgrep", "skills", "pyproject.toml", "README.md", "LICENSE")


def make_manifest(server: dict[str, Any]) -> dict[str, Any]:
    """Return the bundle's manifest; ``server``: the contents of server.json."""
    run = [
        "run",
        "--directory",
        "${__dirname}",
        "flashgrep",
        "mcp",
        "--project",
        "${user_config.project}",
    ]
    return {
        "manifest_version": "0.4",
        "name": "flashgrep",
        "display_name": server["title"],
        "version": __version__,
        "description": server["description"],
        "author": {"name": "The flashgrep authors"},
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "flashgrep/__main__.py",
            "mcp_config": {"command": "uv", "args": run},
        },
        "tools_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux"],
            "runtimes": {"python": ">=3.11"},
        },
        "user_config": {
            "project": {
                "type": "directory",
                "title": "Project",
                "description": "The folder whose code is searched and edited",
                "required": True,
            }
        },
    }


def main() -> None:
    """Write the bundle."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "bundle", type=Path, nargs="?", default=ROOT / "dist" / "flashgrep.mcpb"
    )
    bundle: Path = parser.parse_args().bundle
    bundle.parent.mkdir(parents=True, exist_ok=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", *SHIPPED],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    manifest = make_manifest(json.loads((ROOT / "server.json").read_text()))
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest, indent=2))
        for name in listed.stdout.split("\0")[:-1]:
            archive.write(ROOT / name, name)
    print(f"{bundle}: {bundle.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
