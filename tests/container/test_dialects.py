"""The dialects of a listener, by their names, in their order, and by default."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.amqp10.server.draft_2010_dialect import Draft2010
from trio_amqp10.container.dialects import dialects_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

from contextlib import asynccontextmanager

HEADER = b"AMQP\x00\x00\x09\x01"


@asynccontextmanager
async def serving(host: Any, **options: Any) -> AsyncGenerator[amqp.Listener]:
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(host.serve, "amqp://127.0.0.1:0", **options))
        yield listener
        nursery.cancel_scope.cancel()


async def answered(listener: amqp.Listener, header: bytes = HEADER) -> bytes:
    """The first octets of the answer to a protocol header."""
    with trio.fail_after(5):
        async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
            await stream.send_all(header)
            return bytes(await stream.receive_some(8))


async def test_all_dialects_are_those_that_can_be_told_apart() -> None:
    container = amqp.Container("local")
    container.add_broker()
    assert not any(isinstance(each, Draft2010) for each in dialects_of(container, "all"))


@pytest.mark.parametrize(
    "asked",
    [["1.0", "1.0-draft-2010"], {"1.0-draft-2010": {}, "0-9-1": {}, "1.0": {}}],
    ids=["names", "options"],
)
def test_what_is_served_in_place_of_1_0_is_not_served_beside_it(asked: Any) -> None:
    with pytest.raises(amqp.LocalProtocolError, match="begin alike"):
        dialects_of(amqp.Container("local"), asked)


async def test_name_of_1_0_adds_no_dialect() -> None:
    container = amqp.Container("local")
    assert (
        dialects_of(container, "1.0")
        == dialects_of(container, ["1.0"])
        == dialects_of(container, {"1.0": {}})
        == ()
    )
    assert [each.name for each in dialects_of(container, ["1.0", "0-9-1"])] == ["AMQP 0-9-1"]


async def test_container_speaks_1_0_and_0_9_1_by_default() -> None:
    container = amqp.Container()
    container.add_queue("orders")
    async with serving(container) as listener:
        assert container.broker is None, "a client of 0-9-1 makes it"
        async with amqp.open_connection(listener.url) as one, one.open_sender("orders") as sender:
            await sender.send(b"tea")
        async with amqp091.open_connection(listener.url) as other, other.open_channel() as channel:
            got = await channel.queue("orders").get()
            assert got is not None
            assert got.body == b"tea"
            await channel.declare_queue("new")
        assert container.broker is not None
        assert "new" in container.nodes


@pytest.mark.parametrize("options", [{"dialects": "1.0"}, {"dialects": ()}, {"vet": lambda _: None}])
async def test_container_speaks_1_0_alone_where_that_is_asked_for(options: dict[str, Any]) -> None:
    async with serving(amqp.Container(), **options) as listener:
        assert await answered(listener) == b"AMQP\x00\x01\x00\x00"


async def test_peer_of_another_protocol_draws_one_line_that_names_the_option(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serving(amqp.Container(), dialects="1.0") as listener:
        for header in (HEADER, HEADER, b"AMQP\x01\x01\x0a\x03", b"GET / HT"):
            await answered(listener, header)
        with trio.fail_after(5):
            while len(lines := [each for each in caplog.records if each.levelno == logging.WARNING]) < 2:  # noqa: ASYNC110
                await trio.sleep(0.01)
    first, second = (each.getMessage() for each in lines)
    assert "AMQP 0-9-1" in first
    assert "--dialect 0-9-1" in first
    assert "--dialect 10.3" in second


async def test_strict_container_makes_nothing_for_clients_unless_that_is_asked_for() -> None:
    strict = amqp.Container(strict=True)
    strict.add_queue("orders")
    async with serving(strict) as listener, amqp091.open_connection(listener.url) as connection:
        async with connection.open_channel() as channel:
            await channel.declare_queue("orders", durable=False)
            await channel.publish("", "orders", b"tea")
            with pytest.raises(amqp091.AccessRefusedError, match="makes no queue 'new' for clients"):
                await channel.declare_queue("new")
        async with connection.open_channel() as channel:
            with pytest.raises(amqp091.AccessRefusedError, match="makes no exchange 'new'"):
                await channel.declare_exchange("new")
        async with amqp091.open_connection(listener.url) as other, other.open_channel() as channel:
            with pytest.raises(amqp091.AccessRefusedError):
                await channel.declare_queue(exclusive=True)
    async with (
        serving(amqp.Container(strict=True), dialects=["0-9-1"]) as listener,
        amqp091.open_connection(listener.url) as connection,
        connection.open_channel() as channel,
    ):
        await channel.declare_queue("new")


async def test_strict_container_is_strict_at_every_virtual_host() -> None:
    """Whichever of them was first, with a store and without."""
    stored = amqp.Container("b", strict=True, store=amqp.MemoryStore())
    hosts = {"a": amqp.Container("a", strict=True, store=amqp.MemoryStore()), "b": stored}
    hosts["c"] = amqp.Container("c", strict=True)
    for name, host in hosts.items():
        async with (
            serving(amqp.VirtualHosts(hosts)) as listener,
            amqp091.open_connection(f"{listener.url}/{name}") as connection,
        ):
            async with connection.open_channel() as channel:
                with pytest.raises(amqp091.AccessRefusedError, match="makes no queue 'new' for clients"):
                    await channel.declare_queue("new")
            async with connection.open_channel() as channel:
                with pytest.raises(amqp091.NotFoundError, match=f"in vhost '{name}'"):
                    await channel.declare_queue("new", passive=True)
        assert host.virtual_hosts == (name,)


async def test_declared_queues_of_a_store_are_there_for_every_protocol(tmp_path: Path) -> None:
    with amqp.SqliteStore(tmp_path / "store") as store:
        async with (
            serving(amqp.Container(store=store)) as listener,
            amqp091.open_connection(listener.url) as connection,
            connection.open_channel() as channel,
        ):
            await channel.declare_queue("kept", durable=True)
    with amqp.SqliteStore(tmp_path / "store") as store:
        container = amqp.Container(store=store)
        async with serving(container):
            assert "kept" in container.nodes


async def _never(connection: amqp.Connection) -> None:
    raise AssertionError(connection)


async def test_virtual_hosts_speak_0_9_1_by_default() -> None:
    hosts = amqp.VirtualHosts({"one": amqp.Container("one")})
    async with (
        serving(hosts) as listener,
        amqp091.open_connection(f"{listener.url}/one".replace("amqp:", "amqp091:")) as connection,
        connection.open_channel() as channel,
    ):
        await channel.declare_queue("q")
    async with serving(amqp.VirtualHosts({"one": _never})) as listener:
        assert await answered(listener) == b"AMQP\x00\x01\x00\x00"
