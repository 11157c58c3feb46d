"""Permissions as RabbitMQ 4 has them: the rows of 0-9-1, by one script, with a limited user there and a table of rules here.

``configure`` there is ``create`` and ``delete`` here, ``write`` is ``send`` and ``read`` is ``receive``. RabbitMQ looks at the names of
queues and exchanges, and here a rule names an address. So each row is tried with exactly its permissions, and without each
one of them. What RabbitMQ lets pass and a container refuses is in ``STRICTER``; there is nothing of the other kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
import trio

from tests.amqp091.server.script import Client
from tests.contract.protocols import PROTOCOLS
from tests.contract.rights_scripts import GONE, HERE
from tests.contract.test_rights import outcome
from trio_amqp10.amqp091 import spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.contract.rights_scripts import Right, Row

    from .rabbitmq import Broker

ROWS: Final = PROTOCOLS["0-9-1"].rights.rows
_DEFAULT: Final = "amq.default"
"""What RabbitMQ calls the default exchange where it asks for permission."""

STRICTER: Final = {
    "passive": "RabbitMQ tells every user whether a queue or an exchange exists, and how many messages a queue has",
    "transact": "RabbitMQ has no permission for transactions",
    "each key": "RabbitMQ asks for the exchange alone, and not for the keys of a message, the default exchange included",
}
"""Why a container refuses what RabbitMQ permits."""

_PATTERNS: Final = {"create": "configure", "delete": "configure", "send": "write", "receive": "read"}


def in_rabbitmq(row: Row, right: Right) -> tuple[str, str] | None:
    """The pattern and the name by which RabbitMQ permits this; None if it permits it to everybody."""
    action, address = right
    if row.one or action == "transact":
        return None
    if address is None:
        return "configure", "amq.gen-.*"
    if address.startswith("/exchanges/"):
        name = address.split("/")[2] or _DEFAULT
    elif (action == "send" and not row.method.startswith("queue.")) or "dead letters" in row.case:
        name = (
            _DEFAULT if action == "send" else address
        )  # a message to a queue is published by the default exchange
    else:
        name = address
    return _PATTERNS[action], name


async def verdict(broker: Broker, row: Row, permitted: Iterable[Right]) -> bool:
    """Whether RabbitMQ permits the row to a user that may do this."""
    await prepare(broker)
    granted = [found for right in permitted if (found := in_rabbitmq(row, right)) is not None]
    patterns = [
        "^(" + "|".join(name for pattern, name in granted if pattern == each) + ")$"
        for each in ("configure", "write", "read")
    ]
    texts = ", ".join(f'<<"{each}">>' for each in ("limited", "/", *patterns, "test"))
    assert broker.evaluate(f"rabbit_auth_backend_internal:set_permissions({texts})") == "ok"
    async with await trio.open_tcp_stream("127.0.0.1", broker.port) as stream:
        client = Client(stream)
        await client.open(user="limited", password="limited")
        answer: Any = await row.run(client, row.works_with)
    return not PROTOCOLS["0-9-1"].rights.refused(answer)


async def prepare(broker: Broker) -> None:
    """What the rows are about, by a user that may do everything."""
    async with await trio.open_tcp_stream("127.0.0.1", broker.port) as stream:
        client = Client(stream)
        await client.open()
        for method in (
            *(spec.QueueDelete(queue=name) for name in (HERE, GONE)),
            *(spec.ExchangeDelete(exchange=name) for name in (HERE, GONE)),
            *(spec.QueueDeclare(queue=name, durable=True) for name in (HERE, "other", "copy")),
            *(spec.ExchangeDeclare(exchange=name, type="topic", durable=True) for name in ("events", HERE)),
            spec.ExchangeDeclare(exchange="all", type="fanout", durable=True),
        ):
            assert (await client.ask(method)).name.endswith("-ok")


@pytest.fixture(scope="module")
def limited(rabbitmq4: Broker) -> Broker:
    rabbitmq4.evaluate('rabbit_auth_backend_internal:add_user(<<"limited">>, <<"limited">>, <<"test">>)')
    return rabbitmq4


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row_is_permitted_by_both_with_its_permissions(limited: Broker, row: Row) -> None:
    needed = row.needs(row.works_with)
    for permitted in [[each] for each in needed] if row.one else [needed]:
        assert await verdict(limited, row, permitted)
        answer, _, _ = await outcome(PROTOCOLS["0-9-1"], row, permitted, row.works_with, later=False)
        assert PROTOCOLS["0-9-1"].rights.done(answer)


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_row_is_refused_by_both_without_one_of_its_permissions(limited: Broker, row: Row) -> None:
    needed = row.needs(row.works_with)
    for lacking in [needed] if row.one else [[each] for each in needed]:
        permitted = [each for each in needed if each not in lacking]
        answer, _, _ = await outcome(PROTOCOLS["0-9-1"], row, permitted, row.works_with, later=False)
        assert PROTOCOLS["0-9-1"].rights.refused(answer)
        assert await verdict(limited, row, permitted) == (why_stricter(row, lacking[0]) is not None)


def why_stricter(row: Row, lacking: Right) -> str | None:
    """Why a container refuses this row without that permission and RabbitMQ does not; None if both refuse."""
    if row.one:
        return STRICTER["passive"]
    if lacking[0] == "transact":
        return STRICTER["transact"]
    others = [in_rabbitmq(row, each) for each in row.needs(row.works_with) if each != lacking]
    return STRICTER["each key"] if in_rabbitmq(row, lacking) in others else None
