"""Addresses of one repository have one name, however they are written."""

import pytest

from flashgrep.parts.git.repository import name_address


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://git.example.org/team/a.git", "git.example.org/team/a"),
        ("https://ann:secret@Git.example.org:8443/team/a/", "git.example.org/team/a"),
        ("ssh://git@git.example.org/team/a", "git.example.org/team/a"),
        ("git@git.example.org:team/a.git", "git.example.org/team/a"),
        ("git.example.org:team/a", "git.example.org/team/a"),
        ("/srv/git/a.git", ""),
        ("../a", ""),
        ("file:///srv/git/a.git", ""),
        ("ext::sh -c x", ""),
        ("", ""),
    ],
)
def test_an_address_is_named_alike_however_it_is_written(
    address: str, name: str
) -> None:
    assert name_address(address) == name
