"""Options of the dialect: virtual hosts, limits, no-local; and how ``serve`` takes them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.container import Container

from .script import Client, dialled, opened

# -- virtual hosts ---------------------------------------------------------------------------------


async def asked(client: Client, name: str) -> str:
    """What the server says to a virtual host."""
    await client.log_in()
    return (await client.ask(spec.ConnectionOpen(virtual_host=name), 0)).name


async def test_virtual_host_is_a_container_by_its_name() -> None:
    one, other = Container("one"), Container("other")
    dialect = Amqp091(one, virtual_hosts={"/": one, "other": other})
    async with dialled(one, dialect=dialect) as client:
        assert await asked(client, "other") == "connection.open-ok"
        assert (len(one.connected), len(other.connected)) == (0, 1)
        await client.ask(spec.ChannelOpen())
        await client.ask(spec.QueueDeclare(queue="q"))
        assert ("q" in one.nodes, "q" in other.nodes) == (False, True)
    async with dialled(one, dialect=dialect) as client:
        assert await asked(client, "third") == "connection.close"


async def send(url: str, **options: Any) -> None:
    async with amqp091.open_connection(url, **options) as connection, connection.open_publisher() as out:
        await out.declare_queue("q")
        await out.publish("", "q", b"1")


async def test_virtual_hosts_are_the_containers_of_a_listener() -> None:
    one, other = Container(), Container()
    virtual = amqp.VirtualHosts({"one": one, "vhost:other": other})
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqp://127.0.0.1:0", dialects="all"))
        url = listeners[0].url
        await send(f"{url}/one")
        assert ("q" in one.nodes, "q" in other.nodes) == (True, False)
        await send(f"{url}/other")
        assert "q" in other.nodes
        for name in ("", "/%2f", "/third"):
            with pytest.raises(amqp091.ConnectionClosedError, match="530"):
                await send(url + name)
        nursery.cancel_scope.cancel()


async def test_scheme_of_0_9_1_serves_it_alone() -> None:
    container, urls = Container(), ("amqp091://127.0.0.1:0", "amqp://127.0.0.1:0", "AMQP091s://127.0.0.1:0")
    async with trio.open_nursery() as nursery:
        options = {"ssl_context": serving(), "dialects": "1.0"}
        alone, other, secure = await nursery.start(partial(container.serve, *urls, **options))
        assert alone.url == f"amqp091://127.0.0.1:{alone.port}"
        assert secure.url == f"amqp091s://127.0.0.1:{secure.port}"
        await send(alone.url)
        await send(secure.url.replace("127.0.0.1", "localhost"), cafile=authority().cafile)
        with pytest.raises(amqp.RemoteProtocolError, match=r"expected an AMQP 1\.0 protocol header"):
            async with amqp.open_connection(f"amqp://127.0.0.1:{alone.port}"):
                pass
        with pytest.raises(amqp.RemoteProtocolError, match="which is AMQP"):
            await send(other.url)
        async with amqp.open_connection(other.url) as conn, conn.open_receiver("q") as receiver:
            assert (await receiver.receive()).message.body == b"1"
        nursery.cancel_scope.cancel()


async def test_scheme_of_0_9_1_has_the_options_of_the_dialect() -> None:
    container, limits = Container(), amqp091.Limits(heartbeat=7)
    serve = partial(container.serve, "amqp091://127.0.0.1:0", dialects={"0-9-1": {"limits": limits}})
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(serve)
        async with amqp091.open_connection(listeners[0].url) as connection:
            assert connection.heartbeat == 7
        nursery.cancel_scope.cancel()


async def test_scheme_of_0_9_1_has_the_virtual_hosts_of_a_listener() -> None:
    one, other = Container(), Container()
    virtual = amqp.VirtualHosts({"one": one, "other": other})
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqp091://127.0.0.1:0"))
        await send(f"{listeners[0].url}/other")
        assert ("q" in one.nodes, "q" in other.nodes) == (False, True)
        nursery.cancel_scope.cancel()


async def test_default_host_is_the_virtual_host_of_those_who_want_none_in_particular() -> None:
    one, default = Container(), Container()
    virtual = amqp.VirtualHosts({"one": one}, default=default)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqp://127.0.0.1:0", dialects=["0-9-1"]))
        await send(listeners[0].url)
        assert ("q" in one.nodes, "q" in default.nodes) == (False, True)
        nursery.cancel_scope.cancel()


async def test_virtual_host_is_the_one_that_tls_names() -> None:
    here, other = Container(), Container()
    virtual = amqp.VirtualHosts({"localhost": here, "other": other})
    options = {"dialects": ["0-9-1"], "ssl_context": serving()}
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqps://127.0.0.1:0", **options))
        url = f"amqps://localhost:{listeners[0].port}"
        await send(url, cafile=authority().cafile)
        assert "q" in here.nodes
        await send(f"{url}/localhost", cafile=authority().cafile)
        with pytest.raises(amqp091.ConnectionClosedError, match="530"):
            await send(f"{url}/other", cafile=authority().cafile)
        assert "q" not in other.nodes
        nursery.cancel_scope.cancel()


async def test_dialects_need_a_host_that_is_a_container() -> None:
    async def handle(connection: amqp.Connection) -> None:
        raise AssertionError(connection)

    with pytest.raises(amqp.LocalProtocolError, match="is a Container"):
        await amqp.VirtualHosts({"one": handle}).serve("amqp://127.0.0.1:0", dialects="all")


# -- options ---------------------------------------------------------------------------------------


async def test_limits_of_the_dialect_are_proposed() -> None:
    limits = amqp091.Limits(channel_max=7, frame_max=8192, heartbeat=5, max_message_size=10)
    async with trio.open_nursery() as nursery:
        serve = partial(
            Container().serve, "amqp://127.0.0.1:0", dialects={"0-9-1": {"limits": limits, "no_local": True}}
        )
        listeners = await nursery.start(serve)
        async with amqp091.open_connection(listeners[0].url, heartbeat=60) as connection:
            assert connection.heartbeat == 5
            async with connection.open_channel() as channel:
                with pytest.raises(
                    amqp091.PreconditionFailedError, match="size 11 is larger than max size 10"
                ):
                    await channel.publish("", "q", bytes(11))
                    await channel.declare_queue("q")
        nursery.cancel_scope.cancel()


async def test_option_that_a_dialect_does_not_take_is_refused_by_name() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="takes no vhosts: its options are limits"):
        await Container().serve("amqp://127.0.0.1:0", dialects={"0-9-1": {"vhosts": {}}})


# -- no-local --------------------------------------------------------------------------------------


@pytest.mark.parametrize("obeyed", [False, True])
async def test_no_local_is_obeyed_where_it_is_asked_for(obeyed: bool) -> None:
    container = Container()
    dialect = Amqp091(container, no_local=obeyed)
    async with (
        opened(container, dialect=dialect) as client,
        opened(container, dialect=dialect) as other,
    ):
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c", no_local=True, no_ack=True))
        await client.publish("", "q", b"own")
        await other.publish("", "q", b"another's")
        got = [await client.hear() for _ in range(1 if obeyed else 2)]
        assert (
            [each.body for each in got if each is not None] == [b"another's"]
            if obeyed
            else [b"own", b"another's"]
        )
        if obeyed:
            assert (await other.ask(spec.BasicGet(queue="q", no_ack=True))).body == b"own"


# -- rights ----------------------------------------------------------------------------------------


async def test_purge_needs_the_right_to_receive() -> None:
    container = Container(authorise=amqp.Rules(("*", "create send", "*")))
    async with opened(container) as client:
        assert (await client.ask(spec.QueueDeclare(queue="q"))).name == "queue.declare-ok"
        assert await client.refused(spec.QueuePurge(queue="q")) == 403
    container = Container(authorise=amqp.Rules(("*", "receive", "*")))
    container.add_queue("q")
    async with opened(container) as client:
        assert (await client.ask(spec.QueuePurge(queue="q"))).name == "queue.purge-ok"


async def test_both_dialects_are_served_at_one_port() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=["0-9-1"]))
        url = listeners[0].url
        async with (
            amqp.open_connection(url) as new,
            amqp091.open_connection(url) as old,
            old.open_channel() as channel,
            new.open_receiver("q") as receiver,
        ):
            await channel.publish("", "q", b"from one to the other")
            delivery = await receiver.receive()
            assert delivery.message.body == b"from one to the other"
            delivery.accept()
        nursery.cancel_scope.cancel()


async def test_unknown_dialect_is_refused_by_name() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="no dialect '0-8'"):
        await Container().serve("amqp://127.0.0.1:0", dialects=["0-8"])


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        (b"AMQP\0\0\x09\x01", True),
        (b"AMQP\1\1\0\x09", True),
        (b"AMQP\0\0\x09\x00", True),
        (b"AMQP", None),
        (b"AMQP\0", None),
        (b"AMQP\0\1\0\0", False),
        (b"AMQP\3\1\0\0", False),
        (b"\x16\3\1", False),
    ],
)
async def test_header_tells_the_dialect(head: bytes, claim: bool | None) -> None:
    await trio.lowlevel.checkpoint()
    assert Amqp091(Container()).claims(head) is claim
