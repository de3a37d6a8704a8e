"""Folders that ignore case (exFAT, NTFS, macOS, ext4 with casefold): a name has the spelling that its folder lists."""

import os


def use_listed_names(root: bytes, path: bytes) -> bytes:
    """Return a path below ``root`` with each name as its folder lists it; as it is where case matters.

    That takes one look where case matters: for the last name in capitals for small letters.
    """
    folder, _, name = path.rpartition(b"/")
    swapped = name.swapcase()
    if swapped != name and not os.path.lexists(os.path.join(root, folder, swapped)):
        return path
    folder = root
    names: list[bytes] = []
    for name in path.split(b"/"):
        names.append(_find_listed_name(folder, name))
        folder = os.path.join(folder, names[-1])
    return b"/".join(names)


def _find_listed_name(folder: bytes, name: bytes) -> bytes:
    """Return how ``folder`` lists the entry that is reached by ``name``; the name as it is if nothing else fits."""
    swapped = name.swapcase()
    if swapped == name or not os.path.lexists(os.path.join(folder, swapped)):
        return name
    try:
        listed = os.listdir(folder)
    except OSError:
        return name
    if name in listed:
        return name
    folded = os.fsdecode(name).casefold()
    for other in listed:
        if os.fsdecode(other).casefold() == folded:
            return other
    return name
