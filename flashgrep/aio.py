"""The asynchronous client, for asyncio: ``async with flashgrep.aio.open(".") as project: ...``."""

from flashgrep.client.async_project import AsyncProject as Project
from flashgrep.client.async_project import AsyncResults as Results
from flashgrep.client.async_project import open_project as open

__all__ = ["Project", "Results", "open"]
