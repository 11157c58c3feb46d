"""A network at a port: it leads to a peer, is cut there, and keeps credentials."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import (
    Cut,
    Line,
    open_container,
    open_proxy,
    running_container,
    running_proxy,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_proxy_leads_to_a_peer_and_is_cut_there() -> None:
    async with open_container(["orders"]) as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        cut = Line(cut=Cut(at=600, how="reset"))
        async with open_proxy(listener.url, there=[cut, Line(chunk=7)], back=Line(chunk=3)) as proxy:
            with pytest.raises(amqp.ConnectionClosedError):
                async with (
                    amqp.open_connection(proxy.url) as connection,
                    connection.open_sender("orders") as sender,
                ):
                    for number in range(100):
                        await sender.send(number)
            assert proxy.networks[0].there.octets == 600
            async with amqp.open_connection(proxy.url) as connection:
                async with connection.open_sender("orders") as sender:
                    await sender.send("again")
                proxy.cut("eof")
                with pytest.raises(amqp.ConnectionClosedError, match="without a close"):
                    await connection.wait_closed()
            assert [network.ending for network in proxy.networks] == ["reset", "eof"]
        nursery.cancel_scope.cancel()


async def test_proxy_ends_the_stream_where_nobody_answers() -> None:
    async with open_container() as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        nursery.cancel_scope.cancel()
    async with open_proxy(listener.url, there=[]) as proxy:
        with pytest.raises(amqp.ConnectionClosedError):
            async with amqp.open_connection(proxy.url):
                pass
        with pytest.raises(KeyError):
            async with open_proxy(listener.url):
                raise KeyError


def test_running_proxy_is_for_code_that_is_not_trio() -> None:
    async def use(url: str) -> None:
        async with amqp.open_connection(url) as connection, connection.open_sender("orders") as sender:
            await sender.send("tea")

    with running_container() as url, running_proxy(url, there=Line(chunk=2)) as proxied:
        assert proxied != url
        trio.run(use, proxied)


async def test_proxy_keeps_credentials_and_leads_to_unix_sockets(tmp_path: Path) -> None:
    sasl = amqp.sasl.Server(users={"a:d@": "e/n"})
    container = amqp.Container("behind")
    async with trio.open_nursery() as nursery:
        urls = ("amqp://127.0.0.1:0", f"amqp+unix://{tmp_path}/socket")
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, *urls, sasl=sasl))
        for listener in listeners:
            target = listener.url.replace("127.0.0.1", "a%3Ad%40:e%2Fn@127.0.0.1")
            async with open_proxy(target) as proxy:
                assert proxy.url.startswith("amqp://a%3Ad%40:e%2Fn@127.0.0.1:") is (target != listener.url)
                url = proxy.url if "@" in proxy.url else proxy.url.replace("//", "//a%3Ad%40:e%2Fn@")
                async with amqp.open_connection(url) as connection:
                    assert connection.remote.container_id == "behind"
        nursery.cancel_scope.cancel()
