"""A nursery that does not wrap the exception of its block.

Knows trio; knows no connection.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def tasks_beside() -> AsyncGenerator[trio.Nursery, None]:
    """Open a nursery for tasks that run while the block runs.

    They are cancelled when the block ends. An exception of the block is raised as it is; a nursery would wrap it in a group.

    Raises:
        ExceptionGroup: a task has failed, and the block has been cancelled.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except Exception as raised:
            failure = raised
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
