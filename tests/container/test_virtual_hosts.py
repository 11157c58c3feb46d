"""Virtual hosts: who is served by which container, and who by none (2.7.1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority
from tests.amqp10.peer.helpers import acceptor

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.connection import Connection

    Serve = Callable[..., Any]


def hosts(**options: Any) -> tuple[amqp.VirtualHosts, dict[str, amqp.Container]]:
    containers = {name: amqp.Container(name) for name in ("a.example", "b.example")}
    return amqp.VirtualHosts(containers, **options), containers


async def send(url: str, **options: Any) -> str:
    """To the queue q; returns who took it."""
    async with amqp.open_connection(url, **options) as conn, conn.open_sender("q") as sender:
        await sender.send("hello")
        return conn.remote.container_id


@pytest.mark.parametrize("asked", ["a.example", "A.Example"])
async def test_host_is_the_one_that_open_names(asked: str) -> None:
    virtual, containers = hosts()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        assert await send(listeners[0].url, hostname=asked) == "a.example"
        assert len(containers["a.example"].nodes) == 1
        assert not containers["b.example"].nodes
        nursery.cancel_scope.cancel()


async def test_host_that_is_not_there_turns_the_peer_away_before_the_connection_is_open() -> None:
    virtual, _ = hosts()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await send(listeners[0].url, hostname="c.example")
        assert caught.value.condition == "amqp:not-found"
        assert "c.example" in str(caught.value)
        nursery.cancel_scope.cancel()


async def test_handle_closes_the_connection_when_the_listener_did_not_ask_before() -> None:
    virtual, _ = hosts()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(amqp.serve, virtual.handle, "amqp://127.0.0.1:0")
        with pytest.raises(amqp.AmqpError) as caught:
            await send(listeners[0].url, hostname="c.example")
        assert getattr(caught.value, "condition", None) in ("amqp:not-found", None)
        with pytest.raises(amqp.ConnectionClosedError) as closed:
            async with amqp.open_connection(listeners[0].url, hostname="c.example") as conn:
                await conn.wait_closed()
        assert closed.value.condition == "amqp:not-found"
        await send(listeners[0].url, hostname="a.example")
        nursery.cancel_scope.cancel()


async def test_default_serves_those_who_ask_for_another_host_or_none() -> None:
    rest = amqp.Container("rest")
    virtual, _ = hosts(default=rest)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        assert await send(listeners[0].url, hostname="c.example") == "rest"
        ours, theirs = memory_stream_pair()
        nursery.start_soon(acceptor(vet=virtual.vet).run, theirs, virtual.handle)
        async with amqp.open_connection(ours) as conn:  # a stream: nobody is asked for
            assert conn.remote.container_id == "rest"
        nursery.cancel_scope.cancel()


async def test_host_may_be_a_handler() -> None:
    served: list[str | None] = []

    async def handle(connection: Connection) -> None:
        served.append(connection.remote.hostname)
        await connection.wait_closed()

    virtual = amqp.VirtualHosts({"a.example": handle})
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url, hostname="a.example"):
            pass
        assert served == ["a.example"]
        nursery.cancel_scope.cancel()


def test_hosts_refuse_to_be_none_or_twice_the_same() -> None:
    with pytest.raises(amqp.LocalProtocolError):
        amqp.VirtualHosts({})
    with pytest.raises(amqp.LocalProtocolError, match="A"):
        amqp.VirtualHosts({"a": amqp.Container(), "A": amqp.Container()})
    assert repr(amqp.VirtualHosts({"B": amqp.Container(), "a": amqp.Container()})) == "<VirtualHosts a, b>"


@pytest.mark.parametrize("compare", [True, False])
async def test_names_that_differ_are_refused_when_they_are_to_be_compared(
    compare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual, _ = hosts(compare=compare)
    context = amqp.tls.server_context(authority().issue("a.example", "b.example").file)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqps://127.0.0.1:0", ssl_context=context))
        dial = partial(send, listeners[0].url, cafile=str(authority().cafile))
        assert await dial(hostname="a.example", server_hostname="a.example") == "a.example"
        if compare:
            with pytest.raises(amqp.ConnectionClosedError) as caught:
                await dial(hostname="b.example", server_hostname="a.example")
            assert caught.value.condition == "amqp:not-allowed"
        else:
            assert await dial(hostname="b.example", server_hostname="a.example") == "b.example"
        nursery.cancel_scope.cancel()


async def test_name_in_sasl_counts_where_there_is_no_tls() -> None:
    asked: list[tuple[str | None, str | None]] = []

    def vet(connection: Connection) -> amqp.ErrorInfo | None:
        asked.append((connection.sasl_hostname, connection.server_name))
        connection.sasl_hostname = "b.example"  # as a peer would say that means harm
        return virtual.vet(connection)

    virtual, _ = hosts()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqp://127.0.0.1:0", vet=vet))
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await send(listeners[0].url, hostname="a.example")
        assert caught.value.condition == "amqp:not-allowed"
        assert asked == [("a.example", None)]
        nursery.cancel_scope.cancel()


async def test_sni_is_told_beside_a_callback_that_chooses_certificates() -> None:
    chosen: list[str | None] = []
    context = amqp.tls.server_context(authority().issue("a.example").file)
    context.sni_callback = lambda _tls, name, _context: chosen.append(name)
    names: list[str | None] = []

    async def handle(connection: Connection) -> None:
        names.append(connection.server_name)
        await connection.wait_closed()

    async with trio.open_nursery() as nursery:
        serve = partial(amqp.serve, handle, "amqps://127.0.0.1:0", ssl_context=context)
        await nursery.start(serve)
        listeners = await nursery.start(serve)  # the same context for two listeners
        async with amqp.open_connection(
            listeners[0].url, cafile=str(authority().cafile), server_hostname="a.example"
        ):
            pass
        assert (chosen, names) == (["a.example"], ["a.example"])
        nursery.cancel_scope.cancel()


@pytest.mark.logs_errors
async def test_peer_is_turned_away_when_nobody_can_tell_whether_it_may_come_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def vet(_: Connection) -> amqp.ErrorInfo | None:
        raise ValueError("who?")

    async def never(_: Connection) -> None:
        raise AssertionError("not to be served")

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(amqp.serve, never, "amqp://127.0.0.1:0", vet=vet))
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await send(listeners[0].url)
        assert caught.value.condition == "amqp:internal-error"
        assert "who?" not in str(caught.value)
        assert "vet failed for" in caplog.text
        nursery.cancel_scope.cancel()


async def test_hosts_list_the_listeners_and_the_users_while_they_are_served() -> None:
    virtual, containers = hosts()
    users = amqp.sasl.Server(users={"ada": "secret"})
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(virtual.serve, "amqp://127.0.0.1:0", sasl=users))
        alone = await nursery.start(containers["a.example"].serve, "amqp://127.0.0.1:0")
        assert containers["a.example"].listeners == (*alone, *listeners)
        assert containers["b.example"].listeners == tuple(listeners)
        assert all(each.known_users == {"ada"} for each in containers.values())
        nursery.cancel_scope.cancel()
    assert all(each.listeners == () for each in containers.values())


async def test_host_that_finishes_leaves_the_listener_to_the_others() -> None:
    virtual, containers = hosts()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        assert await containers["a.example"].finish()
        assert containers["a.example"].listeners == ()
        assert containers["b.example"].listeners == tuple(listeners)
        assert await send(listeners[0].url, hostname="b.example") == "b.example"
        more = await nursery.start(virtual.serve, "amqp://127.0.0.1:0")
        assert containers["a.example"].listeners == ()
        assert containers["b.example"].listeners == (*listeners, *more)
        nursery.cancel_scope.cancel()
