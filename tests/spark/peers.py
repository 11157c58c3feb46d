"""The interface of a peer in these tests, for a container and for RabbitMQ 4.

A test with the fixture ``peer`` runs twice: with a container in this process (``server``), and with a node of
RabbitMQ 4 (``broker``). ``logs`` is the same for logs. A test that RabbitMQ cannot run is marked with ``@lacks(...)`` and a word
of the table below; all others run with both.

Tests of event hubs (``test_event_hubs``) and tests without a peer (``test_rows``, ``test_spool`` and the like) use
neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import trio_amqp10 as amqp

LACKS = {
    "transactions": "it has no coordinator: neither transactions=task nor the ledger of transactions=ledger",
    "copy": "its queues move their messages, and cannot be browsed (distribution-mode copy)",
    "selector": "its queues apply no selector",
    "keeping": "it forgets a link with its connection",
    "backpressure": "its queues give credit for as long as there is memory: one that is full rejects",
    "conditions": "its outcomes and errors are its own; here the test says which ones a peer gives",
    "undecodable": "it reads messages itself, and lets none in that cannot be read",
    "forgetting": "its streams forget whole segments, when they like; here the test says what is gone",
    "nobody": "what is tested ends before anything is sent",
    "inside": "the test looks into our own process, or at names and addresses that only our container has",
}
"""Why RabbitMQ 4.0 cannot run a test, by the word of its mark."""


def lacks(word: str) -> pytest.MarkDecorator:
    """Mark a test, or parameters of it, that RabbitMQ cannot run (``LACKS``)."""
    assert word in LACKS, f"{word!r} is not one of {', '.join(LACKS)}"
    return pytest.mark.lacks(word)


class Peer(Protocol):
    """A peer with queues, whose connections a test can close.

    Attributes:
        url: the URL; its user may do everything.
        user: a name and a password.
        mechanisms: the mechanisms of SASL that accept them.
    """

    url: str
    user: tuple[str, str]
    mechanisms: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its container-id."""
        ...

    def address(self, name: str) -> str:
        """Return the address of a queue, which is added if it does not exist."""
        ...

    def bounded(self, name: str, length: int) -> str:
        """Return the address of a new queue that rejects messages above a length."""
        ...

    def releasing(self) -> str:
        """Return an address where all messages are released."""
        ...

    def missing(self) -> str:
        """Return an address without a node, where none is made."""
        ...

    def put(self, name: str, messages: Iterable[Any]) -> None:
        """Send to a queue."""
        ...

    def take(self, name: str) -> list[amqp.Message]:
        """Receive and accept all messages of a queue."""
        ...

    def held(self, name: str) -> int:
        """Return the number of messages in a queue, including unsettled ones."""
        ...

    def receivers(self, name: str) -> int:
        """Return the number of receivers of a queue."""
        ...

    def down(self) -> None:
        """Close all connections, and stop listening."""
        ...

    def up(self) -> None:
        """Listen again, at the same port, with the same messages."""
        ...


class Logs(Protocol):
    """A peer with logs."""

    url: str

    def address(self, name: str) -> str:
        """Return the address of a log, which is added if it does not exist."""
        ...

    def fill(self, name: str, count: int) -> None:
        """Add messages whose bodies are their numbers."""
        ...

    def renew(self, name: str) -> None:
        """Replace a log with an empty one at the same address."""
        ...


async def take_all(connection: amqp.Connection, address: str) -> list[amqp.Message]:
    """Receive and accept all messages of a queue."""
    taken: list[amqp.Message] = []
    async with connection.open_receiver(address, credit=0) as receiver:
        while True:
            receiver.grant(1000)
            deliveries = await receiver.drain()
            for delivery in deliveries:
                taken.append(delivery.message)
                delivery.accept()
            if len(deliveries) < 1000:
                return taken
