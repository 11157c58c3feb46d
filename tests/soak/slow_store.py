"""``amqp10`` on a slow disk: ``python -m tests.soak.slow_store MILLISECONDS serve ...``.

Each commit of a store waits first, for a random time of this mean. So a kill finds much that is answered or not, and not written.
"""

from __future__ import annotations

import random
import sys
import time
from typing import TYPE_CHECKING, Any

from trio_amqp10.broker.stores.sqlite_store import SqliteStore
from trio_amqp10.tools.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


def amqp10(milliseconds: float) -> list[str]:
    """The command ``amqp10``, as such or on a slow disk."""
    if milliseconds:
        return [sys.executable, "-m", "tests.soak.slow_store", str(milliseconds)]
    return [sys.executable, "-m", "trio_amqp10"]


def slow_down(seconds: float) -> None:
    """Have each commit of this process wait."""
    commit: Callable[..., Any] = SqliteStore._commit

    def slowly(self: SqliteStore, work: Any) -> Any:
        time.sleep(random.expovariate(1 / seconds))
        return commit(self, work)

    SqliteStore._commit = slowly  # type: ignore[method-assign]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)) / 1000)
    main()
