"""RabbitMQ 4 as a peer of the pipeline.

All tests share one node, and each test has its own queues and streams.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Self

import trio

import trio_amqp10 as amqp

from .peers import take_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.interop.rabbitmq import Broker

_TESTS = itertools.count(1)


class _Names:
    """Queues of one test, made when they are first asked for."""

    def __init__(self, broker: Broker) -> None:
        self.url = broker.url
        self._broker = broker
        self._prefix = f"spark-{next(_TESTS)}"
        self._made: set[str] = set()

    def _queue(self, name: str) -> str:
        return f'{{resource, <<"/">>, queue, <<"{self._prefix}-{name}">>}}'

    def _make(self, name: str, arguments: str) -> str:
        if name not in self._made:
            self._made.add(name)
            made = self._broker.evaluate(
                f"element(1, rabbit_amqqueue:declare({self._queue(name)}, "
                f'true, false, {arguments}, none, <<"guest">>))'
            )
            assert made == "new"
        return f"/queues/{self._prefix}-{name}"

    def _send(self, address: str, messages: Iterable[Any]) -> None:
        async def main() -> None:
            async with (
                amqp.open_connection(self.url) as connection,
                connection.open_sender(address) as sender,
            ):
                for each in messages:
                    await sender.transmit(each)
                await sender.flush()

        trio.run(main)


class BrokerPeer(_Names):
    """A ``Peer``: queues of RabbitMQ."""

    user = ("guest", "guest")
    mechanisms = ("PLAIN",)

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._down = False

    @property
    def name(self) -> str:
        async def main() -> str:
            async with amqp.open_connection(self.url) as connection:
                return str(connection.remote.container_id)

        return trio.run(main)

    def address(self, name: str) -> str:
        return self._make(name, "[]")

    def bounded(self, name: str, length: int) -> str:
        limit = f'{{<<"x-max-length">>, long, {length}}}'
        return self._make(name, f'[{limit}, {{<<"x-overflow">>, longstr, <<"reject-publish">>}}]')

    def releasing(self) -> str:
        return f"/exchanges/amq.direct/{self._prefix}-unbound"

    def missing(self) -> str:
        return f"/queues/{self._prefix}-missing"

    def put(self, name: str, messages: Iterable[Any]) -> None:
        self._send(self.address(name), messages)

    def take(self, name: str) -> list[amqp.Message]:
        async def main() -> list[amqp.Message]:
            async with amqp.open_connection(self.url) as connection:
                return await take_all(connection, self.address(name))

        return trio.run(main)

    def _info(self, name: str, item: str) -> int:
        self.address(name)
        return int(
            self._broker.evaluate(
                f"element(2, hd(rabbit_amqqueue:info("
                f"element(2, rabbit_amqqueue:lookup({self._queue(name)})), [{item}])))"
            )
        )

    def held(self, name: str) -> int:
        return self._info(name, "messages")

    def receivers(self, name: str) -> int:
        return self._info(name, "consumers")

    def down(self) -> None:
        self._down = True
        self._broker.evaluate("rabbit_maintenance:suspend_all_client_listeners()")
        self._broker.evaluate("rabbit_maintenance:close_all_client_connections()")

    def up(self) -> None:
        self._broker.evaluate("rabbit_maintenance:resume_all_client_listeners()")
        self._down = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """The next test needs the node too."""
        if self._down:
            self.up()


class BrokerLogs(_Names):
    """``Logs``, each of which is a stream of RabbitMQ."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._lengths: dict[str, int] = {}

    def address(self, name: str) -> str:
        return self._make(name, '[{<<"x-queue-type">>, longstr, <<"stream">>}]')

    def fill(self, name: str, count: int) -> None:
        first = self._lengths.get(name, 0)
        self._send(self.address(name), [b"%d" % number for number in range(first, first + count)])
        self._lengths[name] = first + count

    def renew(self, name: str) -> None:
        self.address(name)
        self._broker.evaluate(
            f"element(1, rabbit_amqqueue:delete(element(2, rabbit_amqqueue:lookup({self._queue(name)})), "
            'false, false, <<"guest">>))'
        )
        self._made.discard(name)
        self._lengths.pop(name, None)
        self.address(name)
