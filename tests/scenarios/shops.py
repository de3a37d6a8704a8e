"""Two repositories to search by meaning, and ways to ask for them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from tests.conftest import BOUND, FGREP, DaemonAtHand, short_folder
from tests.scenarios.hosts import Host

REPOSITORIES: dict[str, dict[str, str]] = {
    "shop": {
        "src/payment.py": '"""Payments of customers."""\n\n\ndef charge_credit_card(card, amount):\n'
        '    """Take money from a customer\'s credit card."""\n    return gateway.debit(card, amount)\n',
        "src/basket.py": '"""The shopping basket."""\n\n\ndef add_to_basket(basket, article):\n'
        '    """Put an article into the shopping basket."""\n    basket.articles.append(article)\n',
    },
    "bank": {
        "src/account.py": '"""Accounts of customers."""\n\n\ndef open_account(customer):\n'
        '    """Open an account for a new customer."""\n    return Account(owner=customer)\n',
        "src/debit.py": "def debit_credit_card(card, amount):\n"
        '    """Take money by a credit card."""\n    ledger.book(card, -amount)\n',
    },
}
QUESTION = "take money from a credit card"


@contextmanager
def repositories(daemon: DaemonAtHand) -> Iterator[Path]:
    """Have the daemon know and index the repositories; yields the folder they are in."""
    base = short_folder()
    try:
        for name, files in REPOSITORIES.items():
            for path, text in files.items():
                (base / name / path).parent.mkdir(parents=True, exist_ok=True)
                (base / name / path).write_text(text)
            indexed = daemon.run("index", str(base / name))
            assert indexed.returncode == 0, indexed.stderr
        yield base
    finally:
        shutil.rmtree(base)


def search(agent: Host, **arguments: Any) -> Any:
    """Return what the tool answers, to the usual question without a threshold unless said otherwise."""
    return agent.call(
        "semantic_search", **{"query": QUESTION, "threshold": 0.0, **arguments}
    )


async def ask_by_the_official_client(
    daemon: DaemonAtHand, mode: Any
) -> tuple[set[str], Any, int]:
    """Return the tools listed, the answer to the question, and the code of the error for an unknown tool."""
    server = StdioServerParameters(
        command=FGREP,
        args=["mcp", "--structured", "--toolsets", "all"],
        env=daemon.environ,
        cwd="/",
    )
    with anyio.fail_after(BOUND):
        async with Client(stdio_client(server), mode=mode) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            found = await client.call_tool(
                "semantic_search", {"query": QUESTION, "threshold": 0}
            )
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("semantic_magic", {})
            return tools, found, unknown.value.code
