"""What a peer of the pipeline is to these tests, so that the same tests have ours and RabbitMQ 4 at its ends.

A test that asks for the fixture ``peer`` runs twice: with a container in this process (``server``), and with a node of
RabbitMQ 4 (``broker``). ``logs`` is the same for logs. What only ours can do says so with ``@lacks(...)``, a word
of the table below; nothing else keeps a test from RabbitMQ.

Event hubs (``test_event_hubs``) and the parts that have no peer at all (``test_rows``, ``test_spool`` and the like) ask
for neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import trio_amqp10 as amqp

__all__ = ["LACKS", "Logs", "Peer", "lacks", "take_all"]

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
"""Why RabbitMQ 4.0 has no part in a test, by the word that the test is marked with."""


def lacks(word: str) -> pytest.MarkDecorator:
    """This test, or these parameters of it, are not for RabbitMQ, for a reason in ``LACKS``."""
    assert word in LACKS, f"{word!r} is not one of {', '.join(LACKS)}"
    return pytest.mark.lacks(word)


class Peer(Protocol):
    """Something with queues, and a way to lose its connections.

    Attributes:
        url: where it is, with whoever may do everything there.
        user: a name and a password.
        mechanisms: of SASL, by which it takes them.
    """

    url: str
    user: tuple[str, str]
    mechanisms: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its container-id."""
        ...

    def address(self, name: str) -> str:
        """Of a queue, which is added if need be."""
        ...

    def bounded(self, name: str, length: int) -> str:
        """The address of a new queue that rejects what is more than so many messages."""
        ...

    def releasing(self) -> str:
        """An address where all that is sent is released."""
        ...

    def missing(self) -> str:
        """An address where there is nothing, and nothing is made."""
        ...

    def put(self, name: str, messages: Iterable[Any]) -> None:
        """Send to a queue."""
        ...

    def take(self, name: str) -> list[amqp.Message]:
        """All that a queue has, taken off it."""
        ...

    def held(self, name: str) -> int:
        """Messages that a queue holds, those with receivers among them."""
        ...

    def receivers(self, name: str) -> int:
        """Links that receive from a queue."""
        ...

    def down(self) -> None:
        """Close all connections, and listen no more."""
        ...

    def up(self) -> None:
        """Listen again, at the same port, with all that there was."""
        ...


class Logs(Protocol):
    """Something with logs."""

    url: str

    def address(self, name: str) -> str:
        """Of a log, which is added if need be."""
        ...

    def fill(self, name: str, count: int) -> None:
        """So many more messages, whose bodies are their numbers."""
        ...

    def renew(self, name: str) -> None:
        """Put another one in its place, at the same address: empty."""
        ...


async def take_all(connection: amqp.Connection, address: str) -> list[amqp.Message]:
    """All that a queue has, taken off it."""
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
