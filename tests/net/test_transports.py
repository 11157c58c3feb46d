"""Streams to and from a peer, and whether a third party could read them."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.amqp10.peer.helpers import stream_pair
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net import transports
from trio_amqp10.net.transports import bind, connect, is_private, listener_url, peer_host
from trio_amqp10.net.urls import parse_url

if TYPE_CHECKING:
    from pathlib import Path


async def close(listeners: list[trio.SocketListener]) -> None:
    for listener in listeners:
        await listener.aclose()


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_bind_gives_a_listener_that_its_url_reaches(host: str) -> None:
    url = parse_url(f"amqp://{host}:0")
    [listener] = await bind(url)
    reached = listener_url(url, listener)
    assert reached.startswith(f"amqp://{host}:")
    assert not reached.endswith(":0")
    stream = await connect(parse_url(reached))
    await stream.aclose()
    await close([listener])


async def test_bind_gives_a_listener_that_its_url_reaches_over_unix(tmp_path: Path) -> None:
    url = parse_url(f"amqp+unix://{tmp_path}/a%20socket%3F")
    [listener] = await bind(url)
    assert (tmp_path / "a socket?").is_socket()
    stream = await connect(parse_url(listener_url(url, listener)))
    await stream.aclose()
    await close([listener])


async def test_where_python_has_no_unix_sockets_all_else_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "_UNIX", None)
    (listener,) = await bind(parse_url("amqp://127.0.0.1:0"))
    async with listener:
        client = await connect(parse_url(listener_url(parse_url("amqp://127.0.0.1:0"), listener)))
        async with client, await listener.accept() as server:
            assert peer_host(server) == "127.0.0.1"
            assert is_private(server)
    for reach in (bind, connect):
        with pytest.raises(LocalProtocolError, match="no Unix sockets on this system"):
            await reach(parse_url("amqp+unix:///run/s"))


async def test_bind_replaces_a_unix_socket_that_was_left_behind(tmp_path: Path) -> None:
    url = parse_url(f"amqp+unix://{tmp_path}/s")
    await close(await bind(url))
    assert (tmp_path / "s").is_socket()
    [listener] = await bind(url)
    await (await connect(url)).aclose()
    await close([listener])


async def test_bind_refuses_a_unix_socket_that_somebody_listens_on(tmp_path: Path) -> None:
    url = parse_url(f"amqp+unix://{tmp_path}/s")
    [listener] = await bind(url)
    with pytest.raises(OSError, match="in use"):
        await bind(url)
    await (await connect(url)).aclose()
    await close([listener])


async def test_bind_refuses_at_once_when_the_other_listener_is_too_busy_to_answer(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(path)
        busy.listen(0)
        waiting.connect(path)
        with pytest.raises(OSError, match="in use"):
            await bind(parse_url(f"amqp+unix://{path}"))


async def test_bind_keeps_a_file_that_is_no_socket(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(LocalProtocolError, match="is not a socket: choose another path"):
        await bind(parse_url(f"amqp+unix://{path}"))
    assert path.read_text() == "data"


async def test_bind_leaves_no_socket_open_when_it_fails(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No such file"):
        await bind(parse_url(f"amqp+unix://{tmp_path}/none/s"))
    with pytest.raises(OSError, match="too long"):
        await bind(parse_url(f"amqp+unix://{tmp_path}/{'x' * 200}"))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("kind", ["memory", "tcp", "unix"])
async def test_stream_is_private_when_nobody_can_read_along(kind: str) -> None:
    ours, theirs = await stream_pair(kind)
    assert is_private(ours)
    assert is_private(theirs)
    await ours.aclose()
    await theirs.aclose()


@pytest.mark.parametrize(
    ("name", "private"),
    [
        (("127.0.0.1", 1), True),
        (("127.9.9.9", 1), True),
        (("::1", 1, 0, 0), True),
        (("::ffff:127.0.0.1", 1, 0, 0), True),
        (("10.0.0.1", 1), False),
        (("192.168.1.1", 1), False),
        (("fe80::1%eth0", 1, 0, 2), False),
        (("::ffff:10.0.0.1", 1, 0, 0), False),
        (("0.0.0.0", 1), False),
        (("", 0), False),
        (None, False),
    ],
)
async def test_stream_is_private_by_the_address_of_its_peer(
    name: Any, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = await stream_pair("tcp")
    assert isinstance(ours, trio.SocketStream)

    def getpeername(_: object) -> Any:
        if name is None:
            raise OSError("not connected")
        return name

    monkeypatch.setattr(type(ours.socket), "getpeername", getpeername)
    assert is_private(ours) is private
    await ours.aclose()
    await theirs.aclose()


async def test_stream_of_another_kind_is_private() -> None:
    ours, theirs = memory_stream_pair()
    assert is_private(ours)
    await theirs.aclose()
