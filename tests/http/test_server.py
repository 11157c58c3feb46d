"""The server: where it listens, and clients that are slow, many, or talk nonsense."""

from __future__ import annotations

import ssl
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trio

import trio_amqp10.http.server as module
from tests.amqp10.peer.authority import authority
from trio_amqp10 import tls
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl import Server

from .served import raw, served

if TYPE_CHECKING:
    from trio_amqp10.net.listener import Listener

USERS = Server(users={"ada": "x"})


@pytest.mark.parametrize(
    ("url", "options", "what"),
    [
        ("http://0.0.0.0:0", {}, "no users"),
        ("http://0.0.0.0:0", {"sasl": Server()}, "no users"),
        ("http://0.0.0.0:0", {"sasl": USERS}, "in the clear"),
        ("https://127.0.0.1:0", {"sasl": USERS}, "certificate"),
        ("amqp://127.0.0.1", {}, "expected a URL"),
    ],
)
async def test_url_that_is_not_safe_is_refused(url: str, options: dict[str, Any], what: str) -> None:
    with pytest.raises(LocalProtocolError, match=what):
        await Container().serve_http(url, **options)


async def test_at_least_one_url_is_needed() -> None:
    with pytest.raises(LocalProtocolError, match="at least one URL"):
        await Container().serve_http()


async def test_plain_http_for_other_machines_is_possible_if_it_is_asked_for_by_name() -> None:
    async with served(url="http://0.0.0.0:0", users={"ada": "x"}, allow_plaintext_password=True) as client:
        assert (await client.get("whoami"))["name"] == "ada"


async def test_listener_has_the_real_port_and_is_one_of_the_container() -> None:
    async with served() as client:
        assert [each.port for each in client.container.listeners] == [client.port]
        found = (await client.get("overview"))["listeners"]
    assert [(each["protocol"], each["port"]) for each in found] == [("http", client.port)]
    assert not client.container.listeners


async def test_port_that_is_taken_is_named() -> None:
    async with served() as client:
        with pytest.raises(OSError, match=f"http://127.0.0.1:{client.port}"):
            await Container().serve_http(f"http://127.0.0.1:{client.port}")


async def test_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypercorn.config", None)
    monkeypatch.delitem(sys.modules, "trio_amqp10.http.server", raising=False)
    with pytest.raises(LocalProtocolError, match=r"hypercorn: pip install 'trio-amqp10\[http\]'"):
        await Container().serve_http("http://127.0.0.1:0")


async def test_https_carries_passwords() -> None:
    context = tls.server_context(authority().issue().file)
    trusts = ssl.create_default_context(cafile=authority().cafile)
    async with served(
        url="https://127.0.0.1:0", users={"ada": "x"}, ssl_context=context, trusts=trusts
    ) as client:
        assert (await client.get("whoami"))["name"] == "ada"


async def test_end_of_the_container_closes_the_listener() -> None:
    async with served() as client:
        await client.container.finish()
        with pytest.raises(httpx.ConnectError):
            async with httpx.AsyncClient() as other:
                await other.get(f"http://127.0.0.1:{client.port}/api/overview")


async def test_queue_forgets_expired_messages_while_only_http_is_served() -> None:
    container = Container("box", strict=True)
    container.add_queue("q", ttl=1)
    async with served(container) as client:
        await container.send("q", "x")
        with trio.fail_after(10):
            while (await client.get("queues/%2F/q"))["messages"]:
                pass  # each request takes some time


# -- bad clients ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        b"\x00" * 100,
        b"AMQP\x00\x01\x00\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/whoami HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /api/whoami HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000,
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000,
    ],
)
async def test_nonsense_ends_its_own_connection_alone(octets: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 0.2)
    async with served() as client:
        with trio.fail_after(30):
            answer = await raw(client.port, octets)
        assert b" 200" not in answer
        assert (await client.get("whoami"))["name"] == "none"


async def test_nonsense_behind_a_request_does_not_touch_its_answer() -> None:
    async with served() as client:
        head = f"GET /api/whoami HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n\r\n".encode()
        answer = await raw(client.port, head + b"nonsense\x00\r\n\r\n")
        assert answer.count(b"HTTP/1.1 200") == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with served() as client:
        one = f"GET /api/{{}} HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n{{}}\r\n"
        text = "".join(one.format(path, "") for path in ("version", "whoami", "auth"))
        answer = await raw(client.port, (text + one.format("nope", "Connection: close\r\n")).encode())
        places = [answer.index(mark) for mark in (b'"4.0.5"', b"is_internal_user", b"oauth_enabled", b"404")]
        assert places == sorted(places)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"POST /api/definitions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ],
)
async def test_client_that_stops_is_cut(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_IDLE", 0.1)
    async with served(request_timeout=0.1) as client:
        with trio.fail_after(10):
            answer = await raw(client.port, sent)
        assert b" 200" not in answer


async def test_client_that_never_reads_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = trio.Event()
    really = module.ClientStream.send_all

    async def send_all(self: module.ClientStream, data: bytes) -> None:
        try:
            await really(self, data)
        except trio.BrokenResourceError:
            cut.set()
            raise

    monkeypatch.setattr(module, "_SEND", 0.1)
    monkeypatch.setattr(module.ClientStream, "send_all", send_all)
    container = Container("box", strict=True)
    for number in range(2000):  # the list of them is longer than what the system buffers
        container.add_queue(f"queue-{number}-{'x' * 4000}")
    async with served(container) as client:
        stream = await trio.open_tcp_stream("127.0.0.1", client.port)
        async with stream:
            head = f"GET /api/queues HTTP/1.1\r\nHost: localhost:{client.port}\r\n\r\n"
            await stream.send_all(head.encode())
            with trio.fail_after(60):
                await cut.wait()


async def test_request_for_http_2_is_answered_by_http_1() -> None:
    async with served() as client:
        answer = await client.ask(
            "GET",
            "whoami",
            headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABk"},
        )
    assert (answer.status_code, answer.http_version) == (200, "HTTP/1.1")


async def test_many_slow_clients_do_not_keep_a_good_one_out() -> None:
    async with served(max_connections=50) as client, trio.open_nursery() as nursery:

        async def slow() -> None:
            stream = await trio.open_tcp_stream("127.0.0.1", client.port)
            async with stream:
                await stream.send_all(b"GET /api/whoami HTTP/1.1\r\n")
                await trio.sleep_forever()

        for _ in range(200):
            nursery.start_soon(slow)
        await trio.sleep(0.5)
        for _ in range(5):
            async with httpx.AsyncClient() as good:
                with trio.fail_after(10):
                    answer = await good.get(f"http://127.0.0.1:{client.port}/api/whoami")
            assert answer.status_code == 200
        nursery.cancel_scope.cancel()


@pytest.mark.whole  # it waits for the server's limits of time
@pytest.mark.parametrize(
    "octets",
    [
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 3000000\r\n\r\n"
        + b"x" * 3_000_000,
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: evil\r\nContent-Length: 2\r\n\r\n{}",
        b"GET /api/queues HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000,
        b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"1\r\nx\r\n" * 100,
        b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n" + b"x" * 1000,
        b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ],
)
async def test_no_request_leaves_a_connection_behind(octets: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.http.access._LAST", 0.3)
    async with served(max_connections=3, request_timeout=5) as client:
        for _ in range(6):
            with trio.fail_after(20):
                await raw(client.port, octets)
        with trio.fail_after(20):
            assert (await client.get("whoami"))["name"] == "none"


async def test_request_for_a_websocket_is_answered_as_any_other() -> None:
    async with served() as client:
        head = (
            f"GET /api/whoami HTTP/1.1\r\nHost: localhost:{client.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nno request\r\n\r\n"
        )
        with trio.fail_after(10):
            assert (await raw(client.port, head.encode())).startswith(b"HTTP/1.1 200")


async def test_two_urls_are_served_at_once() -> None:
    container = Container("box")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve_http, "http://127.0.0.1:0", "http://localhost:0")
        listeners: list[Listener] = await nursery.start(serve)
        assert len({each.port for each in listeners}) == len(listeners) >= 2
        nursery.cancel_scope.cancel()
