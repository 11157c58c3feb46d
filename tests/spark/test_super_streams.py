"""Streams that are found through the management of RabbitMQ."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Self

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.rabbitmq import ManagementError, open_management
from trio_amqp10.spark import super_streams
from trio_amqp10.spark.connection_pool import run_in_pool
from trio_amqp10.spark.offset_reader import find_at_moments, find_ends, find_starts
from trio_amqp10.spark.options import LogOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.interop.rabbitmq import Broker

_TESTS = itertools.count(1)


@pytest.fixture
def name() -> str:
    """The name of a super stream of this test, with characters that need encoding."""
    return f"super {next(_TESTS)}"


def declare(broker: Broker, name: str, keys: Sequence[str], *, bound: bool = True) -> None:
    async def main() -> None:
        async with amqp.open_connection(broker.url) as connection, open_management(connection) as management:
            await management.declare_exchange(name, arguments={"x-super-stream": True})
            for place, key in enumerate(keys):
                await management.declare_queue(f"{name}-{key}", type="stream")
                if bound:
                    order = {"x-stream-partition-order": place}
                    await management.bind(name, queue=f"{name}-{key}", routing_key=key, arguments=order)

    trio.run(main)


def fill(broker: Broker, name: str, keys: Sequence[str]) -> None:
    async def main() -> None:
        async with amqp.open_connection(broker.url) as connection:
            for key in keys:
                async with connection.open_sender(amqp.rabbitmq.exchange_address(name, key)) as sender:
                    await sender.send(key.encode())

    trio.run(main)


def options(broker: Broker, **given: str) -> LogOptions:
    return LogOptions.parse({"url": broker.url, "mode": "log"} | given)


def addresses(name: str, keys: Sequence[str]) -> list[str]:
    return [amqp.rabbitmq.queue_address(f"{name}-{key}") for key in keys]


def test_numbered_partitions_of_a_super_stream_are_found(broker: Broker, name: str) -> None:
    declare(broker, name, "012")
    fill(broker, name, "022")
    given = options(broker, superStreams=name)
    logs = addresses(name, "012")
    assert run_in_pool(find_ends, given) == dict(zip(logs, (1, 0, 2), strict=True))
    assert run_in_pool(find_starts, given) == dict.fromkeys(logs, 0)
    assert run_in_pool(find_at_moments, given, dict.fromkeys(logs, 0)) == dict.fromkeys(logs, 0)
    declare(broker, name, "0123")
    assert list(run_in_pool(find_ends, given)) == addresses(name, "0123")


def test_partitions_with_keys_of_their_own_are_named(broker: Broker, name: str) -> None:
    keys = ["amer", "emea"]
    declare(broker, name, keys)
    with pytest.raises(LocalProtocolError, match="name them in option 'partitionKeys'"):
        run_in_pool(find_ends, options(broker, superStreams=name))
    found = run_in_pool(find_ends, options(broker, superStreams=name, partitionKeys="emea,amer"))
    assert list(found) == addresses(name, ["emea", "amer"])
    with pytest.raises(LocalProtocolError, match="no partition of the key 'apac'"):
        run_in_pool(find_ends, options(broker, superStreams=name, partitionKeys="emea,apac"))


def test_pattern_means_what_is_there(broker: Broker, name: str) -> None:
    declare(broker, name, "01", bound=False)
    pattern = amqp.rabbitmq.queue_address(f"{name}-") + "*"
    assert list(run_in_pool(find_ends, options(broker, addressPattern=pattern))) == addresses(name, "01")
    with pytest.raises(LocalProtocolError, match="nothing to read"):
        run_in_pool(find_ends, options(broker, addressPattern="/queues/there-is-none-*"))
    with pytest.raises(LocalProtocolError, match="no super stream"):
        run_in_pool(find_ends, options(broker, superStreams=name))


class Management:
    """Refuses, or does not answer."""

    def __init__(self, failure: Exception) -> None:
        self.failure = failure

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def queue(self, name: str) -> Any:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "raised", "message"),
    [
        (ManagementError("GET /queues/a-0", 403, "no"), ManagementError, "403, no"),
        (trio.TooSlowError(), TimeoutError, r"within 30 s \(readTimeout\)"),
    ],
)
def test_management_that_does_not_say_is_an_error(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, raised: type[Exception], message: str
) -> None:
    monkeypatch.setattr(super_streams, "open_management", lambda *_, **__: Management(failure))
    given = LogOptions.parse({"url": "amqp://h", "mode": "log", "addressPattern": "/queues/a-*"})
    connection: Any = None
    with pytest.raises(raised, match=message):
        trio.run(super_streams.find_streams, connection, given)
