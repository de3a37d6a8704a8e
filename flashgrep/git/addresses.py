"""Where repositories are fetched from: what tells that two clones are of one repository."""

import re
from typing import Final

from flashgrep.errors import FlashgrepError
from flashgrep.git.program import Git

_URL: Final = re.compile(r"(?:https?|ssh|git)://(?:[^/@]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+)")
_SCP: Final = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?![/:])(?P<path>\S+)")
"""As ssh has it; what has no host is a path, which means nothing on another machine."""


def name_address(address: str) -> str:
    """Return host and path of an address, alike however it is written, without a user's name; empty: it has no host."""
    found = _URL.fullmatch(address) or _SCP.fullmatch(address)
    if found is None:
        return ""
    return f"{found['host'].lower()}/{found['path'].strip('/').removesuffix('.git')}"


def list_addresses(git: Git) -> list[str]:
    """Return the names of the addresses that a clone fetches from; none where it is no repository."""
    try:
        printed = git.run("config", "-z", "--get-regexp", r"^remote\..*\.url$")
    except FlashgrepError:  # git fails where nothing is found, too
        return []
    urls = [line.decode("utf-8", "replace").partition("\n")[2] for line in printed.split(b"\0")]
    return [name for name in map(name_address, urls) if name]
