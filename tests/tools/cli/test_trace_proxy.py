"""``amqp10 trace --listen --to``: octets pass as they are, frames are shown, and the page is written in the end."""

from __future__ import annotations

import json
import re
import signal
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
import trustme

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import parse_url
from trio_amqp10.tools.cli import trace_proxy
from trio_amqp10.tools.cli.command_runner import CommandError, Interrupts
from trio_amqp10.tools.cli.dial_options import DialOptions
from trio_amqp10.tools.cli.trace_proxy import ProxyOptions
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter

from .conftest import interrupt, start

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

LOCAL = "amqp://127.0.0.1:0"
SECONDS = 30
OPEN = header() + frame("open", container_id="peer")
CLOSE = frame("close")
BROKEN = b"\0\0\0\7\2\0\0\0 and more of no meaning"


class Proxy:
    """A proxy in this process: what it printed and said, and where it listens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.printed = ""
        self.said: list[str] = []
        self.port = 0
        self.ready = trio.Event()
        self._heard = trio.Event()
        self.interrupts = Interrupts(trio.CancelScope())
        monkeypatch.setattr(trace_proxy, "write_out", self._write)
        monkeypatch.setattr(trace_proxy, "say", self._say)

    async def _write(self, octets: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.printed += octets.decode()
        self._tell()

    def _say(self, text: str) -> None:
        self.said.append(text)
        if found := re.match(r"listening amqps?://127\.0\.0\.1:([0-9]+), forwarding to", text):
            self.port = int(found[1])
            self.ready.set()
        self._tell()

    def _tell(self) -> None:
        self._heard.set()
        self._heard = trio.Event()

    async def hears(self, text: str) -> None:
        """Wait until this was printed or said."""
        while text not in self.printed and text not in "\n".join(self.said):
            await self._heard.wait()

    @property
    def shown(self) -> list[str]:
        """The lines without their times."""
        return [line.split(maxsplit=1)[1] for line in self.printed.splitlines()]


@asynccontextmanager
async def proxy_to(
    monkeypatch: pytest.MonkeyPatch, to: str, listen: str = LOCAL, **options: Any
) -> AsyncGenerator[Proxy]:
    """A proxy as long as the block lasts, which ends as Ctrl-C ends it."""
    proxy = Proxy(monkeypatch)
    chosen = ProxyOptions(**{"listen": listen, "to": to, "dial": DialOptions(), **options})
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trace_proxy.trace_proxy, chosen, proxy.interrupts)
            await proxy.ready.wait()
            yield proxy
            proxy.interrupts.interrupt()


@asynccontextmanager
async def server(handler: Callable[[trio.SocketStream], Awaitable[object]]) -> AsyncGenerator[str]:
    """Something that listens: its URL."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handler, [listener])
        yield f"amqp://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def all_of(stream: trio.abc.ReceiveStream) -> bytes:
    return b"".join([bytes(chunk) async for chunk in stream])


async def echo_when_ended(stream: trio.SocketStream) -> None:
    """Answers, backwards, once the other end has said all that it has to say."""
    async with stream:
        await stream.send_all((await all_of(stream))[::-1])


@pytest.mark.parametrize(
    "octets",
    [OPEN, BROKEN, OPEN + BROKEN * 50_000, bytes(range(256)) * 10_000, b""],
    ids=["frames", "broken", "broken later", "no frames", "nothing"],
)
async def test_octets_and_half_closes_pass_as_they_are(
    monkeypatch: pytest.MonkeyPatch, octets: bytes
) -> None:
    async with (
        server(echo_when_ended) as url,
        proxy_to(monkeypatch, url) as proxy,
        await trio.open_tcp_stream("127.0.0.1", proxy.port) as client,
        trio.open_nursery() as nursery,
    ):

        async def write() -> None:
            await client.send_all(octets)
            await client.send_eof()

        nursery.start_soon(write)
        assert await all_of(client) == octets[::-1]


async def test_frames_are_shown_as_they_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "page.html"

    async def serve(stream: trio.SocketStream) -> None:
        await stream.send_all(OPEN)
        await stream.send_all((await all_of(stream))[-len(CLOSE) :])
        await stream.aclose()

    async with server(serve) as url, proxy_to(monkeypatch, url, html=str(out)) as proxy:
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as client:
            for octets in (header(), OPEN[8:10], OPEN[10:], CLOSE):
                await client.send_all(octets)
            await client.send_eof()
            assert await all_of(client) == OPEN + CLOSE
        await trio.testing.wait_all_tasks_blocked()
    assert [line for line in proxy.shown if "->" in line] == [
        "1  -> header AMQP 0 1.0.0 (AMQP)",
        "1  -> [0] Open(container_id='peer')",
        "1  -> [0] Close()",
    ]
    assert [line for line in proxy.shown if "<-" in line][-1] == "1  <- [0] Close()"
    assert proxy.said[0] == f"listening amqp://127.0.0.1:{proxy.port}, forwarding to {url}"
    assert proxy.said[1] == f"conversation 1: 127.0.0.1 -> {url}"
    assert proxy.said[-1] == f"amqp10: wrote 6 frames to {out}"
    [data] = re.findall(r'<script id="data" type="application/json">(.*)</script>', out.read_text())
    assert len(json.loads(data)["rows"]) == 6


async def test_messages_go_through_the_proxy_to_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    container = amqp.Container("shop")
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, LOCAL)
        async with (
            proxy_to(monkeypatch, listener.url, octets=True) as proxy,
            amqp.open_connection(f"amqp://127.0.0.1:{proxy.port}") as connection,
        ):
            async with connection.open_sender("orders") as sender:
                await sender.send("tea")
            async with connection.open_receiver("orders") as receiver:
                delivery = await receiver.receive()
                assert delivery.message.body == "tea"
                delivery.accept()
        nursery.cancel_scope.cancel()
    assert sum("Transfer(" in line for line in proxy.printed.splitlines()) == 2
    assert "000000  41 4d 51 50" in proxy.printed


async def test_broken_frame_is_shown_once_and_what_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with server(echo_when_ended) as url, proxy_to(monkeypatch, url) as proxy:
        for octets in (header() + BROKEN * 50_000, header()[:5]):
            async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as client:
                await client.send_all(octets)
                await client.send_eof()
                await all_of(client)
            await trio.testing.wait_all_tasks_blocked()
    there = [line for line in proxy.shown if "->" in line]
    assert there[0] == "1  -> header AMQP 0 1.0.0 (AMQP)"
    assert "frame size 7 is less than its own header" in there[1]
    assert there[2:] == ["2  -> 5 octets: the stream ends within it"]


def without_sockets() -> trace_proxy._Proxy:
    """A proxy for streams that nobody buffers."""
    url = parse_url(LOCAL)
    return trace_proxy._Proxy(ProxyOptions(listen=LOCAL, to=LOCAL, dial=DialOptions()), url, url)


@pytest.mark.parametrize(
    ("reads", "passes"),
    [
        pytest.param(False, 1, id="the receiver does not read"),
        pytest.param(True, trace_proxy._BACKLOG + 1, id="nobody reads the frames"),
    ],
)
async def test_sender_waits_where(reads: bool, passes: int) -> None:
    proxy = without_sockets()
    client, near = trio.testing.lockstep_stream_pair()
    far, reader = trio.testing.lockstep_stream_pair()
    written = 0

    async def write() -> None:
        nonlocal written
        while True:
            await client.send_all(b"AMQP\0\1\0\0")
            written += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        nursery.start_soon(proxy._pass_on, 1, ">", FrameSplitter(), near, far)
        if reads:
            nursery.start_soon(all_of, reader)
        await trio.testing.wait_all_tasks_blocked()
        assert written == passes
        nursery.cancel_scope.cancel()


async def test_interrupt_leaves_no_socket_open(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        assert await all_of(stream) == OPEN
        ended.set()

    async with server(serve) as url:
        async with proxy_to(monkeypatch, url) as proxy:
            client = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            await client.send_all(OPEN)
            await proxy.hears("Open(")
        with trio.fail_after(SECONDS):
            assert await all_of(client) == b""
            await ended.wait()
        await client.aclose()
        with pytest.raises(OSError, match="all attempts to connect"):
            await trio.open_tcp_stream("127.0.0.1", proxy.port)


async def test_connection_that_breaks_ends_at_both_ends_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        if await stream.receive_some(1) == b"!":
            stream.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER of nothing: a reset
            stream.socket.close()
        else:
            await echo_when_ended(stream)

    async with server(serve) as url, proxy_to(monkeypatch, url) as proxy:
        other = await trio.open_tcp_stream("127.0.0.1", proxy.port)
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as client:
            await client.send_all(b"!")
            assert await all_of(client) == b""
        await other.send_all(b"?12")
        await other.send_eof()
        assert await all_of(other) == b"21"
        await other.aclose()
        await proxy.hears("conversation 2: connection lost:")


async def test_target_that_is_not_there_is_said_and_the_dialler_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with server(echo_when_ended) as url:
        pass
    async with proxy_to(monkeypatch, url) as proxy:
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as client:
            assert await all_of(client) == b""
        await proxy.hears("no program listens there")


async def test_proxy_speaks_tls_with_either_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, ca = str(tmp_path / "cert.pem"), str(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(certificate)
    authority.cert_pem.write_to_path(ca)
    container = amqp.Container("shop")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, ssl_context=amqp.tls.server_context(certificate))
        [listener] = await nursery.start(serve, "amqps://127.0.0.1:0")
        tls = {"listen": "amqps://127.0.0.1:0", "listen_cert": certificate}
        async with proxy_to(monkeypatch, listener.url, dial=DialOptions(cafile=ca), **tls) as proxy:
            async with (
                amqp.open_connection(f"amqps://127.0.0.1:{proxy.port}", cafile=ca) as connection,
                connection.open_sender("orders") as sender,
            ):
                await sender.send("tea")
            await proxy.hears("Transfer(")
            plain = await trio.open_tcp_stream("127.0.0.1", proxy.port)
            await plain.send_all(OPEN)
            await all_of(plain)
            await plain.aclose()
            await proxy.hears("the input from the peer is not TLS")
        async with proxy_to(monkeypatch, listener.url, **tls) as proxy:
            with pytest.raises(amqp.ConnectionClosedError):
                async with amqp.open_connection(f"amqps://127.0.0.1:{proxy.port}", cafile=ca):
                    pass
            await proxy.hears("give its authority as --tls-ca FILE")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"listen": "amqps://127.0.0.1:0"}, CommandError, "needs a certificate"),
        ({"listen_cert": __file__}, CommandError, "does not use"),
        (
            {"listen": "amqps://127.0.0.1:0", "listen_cert": __file__},
            CommandError,
            "not a matching certificate and key",
        ),
        ({"dial": DialOptions(insecure=True)}, LocalProtocolError, "has no TLS"),
        ({"html": "/missing/page.html"}, OSError, "No such file"),
    ],
)
async def test_proxy_does_not_begin_where_options_make_no_sense(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], error: type[Exception], why: str
) -> None:
    proxy = Proxy(monkeypatch)
    chosen = ProxyOptions(**{"listen": LOCAL, "to": "amqp://127.0.0.1:1", "dial": DialOptions(), **options})
    with pytest.raises(error, match=why):
        await trace_proxy.trace_proxy(chosen, proxy.interrupts)
    assert proxy.said == []


async def test_proxy_ends_where_nobody_reads_its_output_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy(monkeypatch)

    async def closed(octets: bytes) -> None:
        raise CommandError("nobody reads")

    monkeypatch.setattr(trace_proxy, "write_out", closed)

    async def dial() -> None:
        await proxy.ready.wait()
        async with await trio.open_tcp_stream("127.0.0.1", proxy.port) as client:
            await client.send_all(OPEN)
            await all_of(client)

    async with server(echo_when_ended) as url, trio.open_nursery() as nursery:
        nursery.start_soon(dial)
        with pytest.raises(CommandError, match="nobody reads"), trio.fail_after(SECONDS):
            await trace_proxy.trace_proxy(
                ProxyOptions(listen=LOCAL, to=url, dial=DialOptions()), proxy.interrupts
            )


def test_command_ends_well_on_ctrl_c_and_writes_the_page(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    process = start("trace", "--listen", LOCAL, "--to", "amqp://127.0.0.1:1", "--html", str(out))
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"listening amqp://127.0.0.1:")
    _, said = interrupt(process, signal.SIGINT)
    assert process.returncode == 0
    assert said.decode().strip() == f"amqp10: wrote 0 frames to {out}"
    assert out.read_text().startswith("<!doctype html>")
