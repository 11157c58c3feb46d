"""A channel of the server: what is the program's, and what no server takes."""

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.wire.properties import TunnelProperties
from trio_amqp10.container import Container

from .script import opened


async def test_tunnel_is_the_programs() -> None:
    found: list[Any] = []
    dialect = Amqp103(Container(), on_tunnel=lambda _peer, meta, content: found.append((meta, content)))
    async with opened(dialect=dialect) as client:
        method = spec.TunnelRequest(meta_data={"to": "b"})
        await client.carry(method, b"octets", TunnelProperties(data_name="d"))
        assert await client.quiet()
    ((meta, content),) = found
    assert (meta, content.body, content.properties.data_name) == ({"to": "b"}, b"octets", "d")


async def test_tunnel_and_cluster_without_a_program_are_dropped() -> None:
    async with opened() as client:
        await client.carry(spec.TunnelRequest(), b"octets", TunnelProperties())
        await client.say(spec.ClusterHello(name="n"), channel=0)
        assert await client.quiet()


async def test_cluster_is_the_programs() -> None:
    found: list[Any] = []
    dialect = Amqp103(Container(), on_cluster=lambda _peer, method: found.append(method))
    async with opened(dialect=dialect) as client:
        await client.say(spec.ClusterHello(name="n"), spec.ClusterStatus(master=True), channel=0)
        assert await client.quiet()
    assert found == [spec.ClusterHello(name="n"), spec.ClusterStatus(master=True)]


async def test_method_of_no_server_is_refused() -> None:
    async with opened() as client:
        assert await client.refused(spec.ChannelAlert()) == ("connection", 503)
