"""cluster.bind: what an exchange has is relayed to the peer, as a method in a tunnel (C 1718-1763)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.amqp_10_3 import naive
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container

from .script import NAMES, Client, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def both() -> AsyncIterator[tuple[Client, Client]]:
    """A peer, and a publisher that has made an exchange ``prices``."""
    dialect = Amqp103(Container("hub"), tickets=False)
    async with (
        opened(dialect=dialect, name="peer") as peer,
        opened(dialect=dialect, name="out") as out,
    ):
        await out.ask(spec.ExchangeDeclare(exchange="prices", type="topic"))
        yield peer, out


def in_tunnel(heard: Any) -> tuple[dict[str, Any], list[Any], bytes]:
    """The arguments of the basic.publish in a tunnel, its properties and its body, by the second reader."""
    kinds, payloads, pos = [], [], 0
    octets = heard.body
    while pos < len(octets):
        size = int.from_bytes(octets[pos + 4 : pos + 8], "big")
        kinds.append(octets[pos])
        payloads.append(octets[pos + 8 : pos + 8 + size])
        assert octets[pos + 8 + size] == 0xCE
        pos += 9 + size
    assert kinds[:2] == [1, 2]
    assert set(kinds[2:]) <= {3}
    name, arguments = naive.method(payloads[0])
    assert name == "basic.publish"
    _, _, size, properties = naive.header(payloads[1])
    body = b"".join(payloads[2:])
    assert size == len(body)
    return dict(zip(NAMES[name], arguments, strict=True)), properties, body


async def bound(peer: Client, **arguments: Any) -> None:
    """cluster.bind, which has no answer."""
    await peer.say(spec.ClusterBind(exchange="prices", **arguments), channel=0)
    assert await peer.quiet()


@pytest.mark.parametrize("size", [0, 3, 200_000])
async def test_what_fits_is_relayed_as_a_publish_in_a_tunnel(both: tuple[Client, Client], size: int) -> None:
    peer, out = both
    await bound(peer, routing_key="eu.#")
    await out.publish("prices", "us.tea", b"not this")
    await out.publish("prices", "eu.tea", b"x" * size, headers={"n": 1}, delivery_mode=2)
    heard = await peer.heard("tunnel.request")
    assert heard["meta_data"] == [(b"exchange", ("S", b"prices")), (b"routing_key", ("S", b"eu.tea"))]
    assert heard.properties[1:] == [b"hub", b"basic.publish", 1, None]
    arguments, properties, body = in_tunnel(heard)
    assert (arguments["exchange"], arguments["routing_key"], body) == (b"prices", b"eu.tea", b"x" * size)
    assert properties[2:4] == [[(b"n", ("I", 1))], 2]
    assert await peer.quiet()


async def test_peer_binds_many_times_and_gets_a_message_once(both: tuple[Client, Client]) -> None:
    peer, out = both
    await bound(peer, routing_key="a")
    await bound(peer, routing_key="a")
    await bound(peer, routing_key="#")
    await out.publish("prices", "a", b"1")
    assert in_tunnel(await peer.heard("tunnel.request"))[2] == b"1"
    assert await peer.quiet()


async def test_what_the_peer_publishes_itself_is_not_relayed_to_it(both: tuple[Client, Client]) -> None:
    peer, _ = both
    await bound(peer, routing_key="#")
    await peer.publish("prices", "a", b"1")
    assert await peer.quiet()


async def test_relay_goes_to_another_channel_and_waits_for_one(both: tuple[Client, Client]) -> None:
    peer, out = both
    await bound(peer, routing_key="#")
    assert (await peer.ask(spec.ChannelOpen(), 2)).name == "channel.open-ok"
    assert (await peer.ask(spec.ChannelClose(reply_code=200), 1)).name == "channel.close-ok"
    await out.publish("prices", "a", b"1")
    heard = await peer.heard("tunnel.request")
    assert (heard.channel, in_tunnel(heard)[2]) == (2, b"1")
    assert (await peer.ask(spec.ChannelClose(reply_code=200), 2)).name == "channel.close-ok"
    await out.publish("prices", "a", b"2")
    assert await out.quiet()
    assert (await peer.ask(spec.ChannelOpen(), 3)).name == "channel.open-ok"
    heard = await peer.heard("tunnel.request")
    assert (heard.channel, in_tunnel(heard)[2]) == (3, b"2")


async def test_relay_obeys_the_flow_of_its_channel(both: tuple[Client, Client]) -> None:
    peer, out = both
    await bound(peer, routing_key="#")
    assert (await peer.ask(spec.ChannelFlow(active=False))).name == "channel.flow-ok"
    await out.publish("prices", "a", b"1")
    assert await out.quiet()
    assert await peer.quiet()
    assert (await peer.ask(spec.ChannelFlow(active=True))).name == "channel.flow-ok"
    assert in_tunnel(await peer.heard("tunnel.request"))[2] == b"1"


async def test_queue_of_a_relay_goes_with_its_connection() -> None:
    container = Container("hub")
    dialect = Amqp103(container, tickets=False)
    async with opened(dialect=dialect) as out:
        await out.ask(spec.ExchangeDeclare(exchange="prices", type="topic"))
        before = set(container.nodes)
        async with opened(dialect=dialect) as peer:
            await bound(peer)
            assert len(set(container.nodes) - before) == 1
        assert await out.quiet()
    assert set(container.nodes) == before


@pytest.mark.parametrize(
    ("method", "code"),
    [(spec.ClusterBind(exchange="nope"), 404), (spec.ClusterBind(exchange=""), 403)],
    ids=str,
)
async def test_bind_that_cannot_be_is_told_by_an_alert(
    both: tuple[Client, Client], method: spec.ClusterBind, code: int
) -> None:
    peer, _ = both
    await peer.say(method, channel=0)
    heard = await peer.heard("channel.alert")
    assert heard["reply_code"] == code
    await bound(peer, routing_key="#")


@pytest.mark.parametrize("actions", [["open"], ["open", "create"]])
async def test_bind_needs_permission_to_create_and_to_receive(actions: list[str]) -> None:
    container = Container("hub", authorise=lambda access: access.action in actions)
    dialect = Amqp103(container, tickets=False)
    dialect_broker = container.broker or container.add_broker()
    dialect_broker.declare_exchange("prices", "topic")
    async with opened(dialect=dialect) as peer:
        await peer.say(spec.ClusterBind(exchange="prices"), channel=0)
        assert (await peer.heard("channel.alert"))["reply_code"] == 403


async def test_program_hears_of_it_too() -> None:
    found: list[Any] = []
    dialect = Amqp103(Container(), on_cluster=lambda _peer, method: found.append(method), tickets=False)
    async with opened(dialect=dialect) as peer:
        await peer.ask(spec.ExchangeDeclare(exchange="prices"))
        await bound(peer, routing_key="a")
    assert found == [spec.ClusterBind(exchange="prices", routing_key="a")]
