"""Names of the queues of this command: where a batch is while it is on its way.

A container has them, as source or as target. ``migrate/out/QUEUE/BATCH`` has a batch that leaves it, ``migrate/in/QUEUE/BATCH`` one that
came. The name of the queue is percent-encoded. ``migrate/looks/QUEUE`` has a message for each time that a run looked at the messages
which are at the target: some brokers drop a message that was looked at too often.

Knows names; knows no broker.
"""

from __future__ import annotations

from secrets import token_hex
from typing import Final, Literal, NamedTuple
from urllib.parse import quote, unquote

Way = Literal["out", "in"]

PREFIX: Final = "migrate/"
"""The prefix of the queues of this command, which are not migrated."""
LOCK: Final = f"{PREFIX}lock"
"""The queue at a container that one run at a time receives from."""


def looks_address(queue: str) -> str:
    """Return the address of the queue that counts looks at the target of this queue."""
    return f"{PREFIX}looks/{quote(queue, safe='')}"


class Staging(NamedTuple):
    """A staging queue.

    Attributes:
        way: whether its batch leaves the container or came to it.
        queue: the address of the queue at the container.
        batch: the name of the batch, unlike that of any other.
    """

    way: Way
    queue: str
    batch: str

    @property
    def address(self) -> str:
        """The address of the staging queue."""
        return f"{PREFIX}{self.way}/{quote(self.queue, safe='')}/{self.batch}"


def new_staging(way: Way, queue: str) -> Staging:
    """Return a staging queue of a fresh name."""
    return Staging(way, queue, token_hex(8))


def find_staging(address: str) -> Staging | None:
    """Return the staging queue of this address; None if it is of another kind."""
    parts = address.removeprefix(PREFIX).split("/")
    if not address.startswith(PREFIX) or len(parts) != 3:
        return None
    for way in ("out", "in"):
        if parts[0] == way:
            return Staging(way, unquote(parts[1]), parts[2])
    return None
