"""A container that serves HTTP at a port of this machine, and a client of it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import trio

from trio_amqp10.container import Container
from trio_amqp10.sasl import Server

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from trio_amqp10.net.listener import Listener


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")


class Client:
    """A client of the API; a path is below ``/api/``."""

    def __init__(self, container: Container, client: httpx.AsyncClient, port: int) -> None:
        self.container = container
        self.http = client
        self.port = port

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return await self.http.request(method, f"/api/{path}", **options)

    async def get(self, path: str) -> Any:
        """The JSON of an answer of 200."""
        answer = await self.ask("GET", path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return answer.json()

    async def put(self, path: str, body: Any = None) -> int:
        return (await self.ask("PUT", path, {} if body is None else body)).status_code

    async def post(self, path: str, body: Any) -> Any:
        """The JSON of an answer of 200, or the answer of another status."""
        answer = await self.ask("POST", path, body)
        return answer.json() if answer.status_code == 200 else answer

    async def delete(self, path: str) -> int:
        return (await self.ask("DELETE", path)).status_code

    async def fault(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str, str]:
        """The status, the error and the reason of a refused request."""
        answer = await self.ask(method, path, body, **options)
        found = answer.json()
        assert set(found) == {"error", "reason"}, answer.text
        assert answer.status_code >= 400
        return answer.status_code, found["error"], found["reason"]


@asynccontextmanager
async def served(
    container: Container | None = None,
    *,
    users: dict[str, str] | None = None,
    login: tuple[str, str] | None = None,
    url: str = "http://127.0.0.1:0",
    trusts: ssl.SSLContext | None = None,
    server: Server | None = None,
    **options: Any,
) -> AsyncGenerator[Client]:
    """Serve a container, and yield a client that is logged in as the first user."""
    container = container or Container("box", strict=True)
    if container.broker is None:
        container.add_broker()
    sasl = server if users is None else Server(users=users)
    auth = login or (next(iter(users.items())) if users else None)
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve_http, url, sasl=sasl, **options)
        listeners: list[Listener] = await nursery.start(serve)
        base = listeners[0].url.replace("127.0.0.1", "localhost") if trusts else listeners[0].url
        async with httpx.AsyncClient(base_url=base, auth=auth, verify=trusts or True, timeout=60) as client:
            yield Client(container, client, listeners[0].port)
        nursery.cancel_scope.cancel()


async def raw(port: int, octets: bytes) -> bytes:
    """All that the server answers to these octets until it closes."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        answer = b""
        try:
            await stream.send_all(octets)
            while data := await stream.receive_some():
                answer += bytes(data)
        except trio.BrokenResourceError:
            pass
        return answer
