"""Test with a network that loses the connection, at the same octet in each run."""

import trio
from trio.testing import trio_test

import trio_amqp10 as amqp
from trio_amqp10.testing import Cut, Line, open_container, open_proxy


async def deliver(url: str, what: str) -> int:
    """The tested code: send until the peer accepts; return the number of attempts."""
    for attempt in range(1, 10):
        try:
            async with amqp.open_connection(url) as connection, connection.open_sender("orders") as sender:
                await sender.send(what)
        except amqp.ConnectionClosedError:
            await trio.sleep(0.01 * attempt)
        else:
            return attempt
    raise TimeoutError(f"{what!r} could not be delivered")


@trio_test
async def test_deliver_survives_two_cuts() -> None:
    lines = [Line(cut=Cut(at=100, how="reset")), Line(cut=Cut(at=250)), Line(chunk=1)]
    async with open_container(queues=["orders"]) as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with open_proxy(listener.url, there=lines) as proxy:
            assert await deliver(proxy.url, "tea") == 3
        nursery.cancel_scope.cancel()
