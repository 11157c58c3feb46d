"""Connections of 10.3 to a container: the handshake, redirects, tickets, tunnels, clusters, closes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.container.protocols.served import served
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.frames import PROTOCOL_HEADER
from trio_amqp10.amqp_10_3.properties import TunnelProperties
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp_10_3.protocol import Amqp103
from trio_amqp10.container.protocols.table import dialects_of
from trio_amqp10.errors import Condition
from trio_amqp10.sasl import Server

from .script import ALL, Client, dialled, opened


async def test_message_goes_through_a_queue() -> None:
    async with opened() as client:
        await client.declare("q")
        await client.publish("", "q", b"hello", content_type="text/plain", headers={"n": 1})
        heard = await client.ask(spec.BasicGet(queue="q"))
        assert (heard.name, heard.body) == ("basic.get-ok", b"hello")
        assert heard.properties[:3] == [b"text/plain", None, [(b"n", ("I", 1))]]
        assert heard["message_count"] == 0
        await client.say(spec.BasicAck(delivery_tag=heard["delivery_tag"]))
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


@pytest.mark.parametrize(
    ("head", "claim"),
    [
        (b"A", None),
        (b"AMQP\1", None),
        (b"AMQP\1\1", True),
        (b"AMQP\1\1\x0a\3", True),
        (b"AMQP\0\0\x09\1", False),
        (b"G", False),
    ],
)
def test_headers_of_class_1_instance_1_are_claimed(head: bytes, claim: bool | None) -> None:
    assert Amqp103(Container()).claims(head) is claim


def test_dialect_has_its_name_in_the_table() -> None:
    container = Container()
    (made,) = dialects_of(container, "10.3", tickets=False)
    assert isinstance(made, Amqp103)
    assert not made.options.tickets
    assert [each.name for each in dialects_of(container, ("0-9-1", "10.3"))] == [
        "AMQP 0-9-1",
        "AMQ Protocol 10.3",
    ]


async def test_client_of_0_9_is_told_of_10_3() -> None:
    async with served(Amqp103(Container())) as stream:
        await stream.send_all(b"AMQP\1\1\x0a\4")
        assert await stream.receive_some() == PROTOCOL_HEADER
        assert await stream.receive_some() == b""


async def test_client_hears_who_the_server_is() -> None:
    async with dialled(Container("here")) as client:
        await client.stream.send_all(PROTOCOL_HEADER)
        start = await client.heard("connection.start")
        said = {name: value for name, (_, value) in start["server_properties"]}
        assert said[b"cluster_name"] == b"here"
        assert b"capabilities" not in said
        assert (start["version_major"], start["version_minor"]) == (10, 3)


async def test_user_logs_in_and_a_wrong_password_ends_the_connection(autojump_clock: object) -> None:
    sasl = Server({"ada": "secret"})
    container = Container()
    async with opened(container, sasl, user="ada", password="secret"):
        (peer,) = container.connected
        assert peer.identity.name == "ada"
    async with dialled(container, sasl) as client:
        await client.stream.send_all(PROTOCOL_HEADER)
        await client.heard("connection.start")
        await client.say(spec.ConnectionStartOk(response=b"\0ada\0wrong"), channel=0)
        assert await client.hear() is None


async def test_unknown_virtual_host_is_refused_with_530() -> None:
    async with dialled(Container()) as client:
        await client.log_in()
        assert await client.refused(spec.ConnectionOpen(virtual_host="/nope"), 0) == ("connection", 530)


async def test_client_is_redirected_unless_it_insists() -> None:
    asked: list[tuple[str, bool]] = []

    def redirect(virtual_host: str, insists: bool) -> tuple[str, str] | None:
        asked.append((virtual_host, insists))
        return None if insists else ("h2:5672", "h3:5672")

    dialect = Amqp103(Container(), redirect=redirect)
    async with dialled(Container(), dialect=dialect) as client:
        await client.log_in()
        heard = await client.ask(spec.ConnectionOpen(), 0)
        assert (heard.name, heard["host"], heard["known_hosts"]) == (
            "connection.redirect",
            b"h2:5672",
            b"h3:5672",
        )
        assert await client.hear() is None
    async with dialled(Container(), dialect=dialect) as client:
        await client.log_in()
        assert (await client.ask(spec.ConnectionOpen(insist=True), 0)).name == "connection.open-ok"
    assert asked == [("/", False), ("/", True)]


async def test_connection_is_in_the_figures_of_the_container() -> None:
    container = Container()
    async with opened(container, name="shop") as client:
        await client.declare("q")
        await client.consume()
        (peer,) = container.connected
        assert peer.container_id == "shop"
        assert peer.statistics()["protocol"] == "AMQ Protocol 10.3"
        assert peer.statistics()["senders"] == 1
        peer.close(Condition.CONNECTION_FORCED, "over")
        assert await client.closed(await client.hear(), 0) == ("connection", 320)


# -- tickets --------------------------------------------------------------------------------


def with_tickets(**options: Any) -> Amqp103:
    return Amqp103(Container(), **options)


async def test_ticket_permits_what_it_was_asked_for() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        assert client.ticket
        await client.declare("q")
        await client.publish("", "q", b"x")
        await client.consume()
        assert (await client.heard("basic.deliver")).body == b"x"
        assert (await client.ask(spec.QueuePurge(ticket=client.ticket, queue="q"))).name == "queue.purge-ok"


@pytest.mark.parametrize(
    "method",
    [
        spec.QueueDeclare(queue="q"),
        spec.ExchangeDeclare(exchange="e"),
        spec.ExchangeDelete(exchange="e"),
        spec.QueueDeclare(queue="q", passive=True),
        spec.QueueBind(queue="q", exchange="amq.direct"),
        spec.QueuePurge(queue="q"),
        spec.QueueDelete(queue="q"),
        spec.BasicConsume(queue="q"),
        spec.FileConsume(queue="q"),
        spec.StreamConsume(queue="q"),
        spec.BasicGet(queue="q"),
    ],
    ids=lambda method: method.plan.name,
)
async def test_without_a_ticket_it_is_refused_with_403(method: Any) -> None:
    async with opened(dialect=with_tickets()) as client:
        assert await client.refused(method) == ("channel", 403)


@pytest.mark.parametrize(("right", "asked"), [("active", "read"), ("read", "active")])
async def test_ticket_for_something_else_is_refused_with_403(right: str, asked: str) -> None:
    async with opened(dialect=with_tickets()) as client:
        ticket = (await client.ask(spec.AccessRequest(**{asked: True})))["ticket"]
        method = (
            spec.QueueDeclare(ticket=ticket, queue="q")
            if right == "active"
            else spec.BasicGet(ticket=ticket, queue="q")
        )
        assert await client.refused(method) == ("channel", 403)


async def test_publish_needs_a_ticket_to_write() -> None:
    async with opened(dialect=with_tickets()) as client:
        client.ticket = (await client.ask(spec.AccessRequest(active=True)))["ticket"]
        await client.declare("q")
        await client.publish("", "q", b"x")
        assert await client.closed(await client.hear()) == ("channel", 403)


async def test_ticket_of_another_channel_ends_the_connection_with_530() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        await client.ask(spec.ChannelOpen(), 2)
        method = spec.QueueDeclare(ticket=client.ticket, queue="q")
        assert await client.refused(method, 2) == ("connection", 530)


async def test_ticket_ends_with_its_channel() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        await client.ask(spec.ChannelOpen(), 2)
        assert (await client.ask(spec.ChannelClose())).name == "channel.close-ok"
        method = spec.QueueDeclare(ticket=client.ticket, queue="q")
        assert await client.refused(method, 2) == ("channel", 403)


@pytest.mark.parametrize(
    ("realm", "refused"),
    [
        ("/nope", ("connection", 403)),
        ("", ("connection", 403)),
        ("/admin", ("channel", 402)),
        ("/data/x", ("channel", 402)),
    ],
)
async def test_realm_that_is_not_there_is_refused(realm: str, refused: tuple[str, int]) -> None:
    async with opened(dialect=with_tickets()) as client:
        assert await client.refused(spec.AccessRequest(realm=realm)) == refused


async def test_exclusive_ticket_keeps_others_out_while_its_channel_lasts() -> None:
    dialect = with_tickets()
    async with opened(dialect=dialect) as one:
        assert (await one.ask(spec.AccessRequest(read=True, exclusive=True))).name == "access.request-ok"
        assert (await one.ask(spec.AccessRequest(read=True))).name == "access.request-ok"
        async with opened(dialect=dialect) as two:
            assert await two.refused(ALL) == ("connection", 403)
        assert (await one.ask(spec.ChannelClose())).name == "channel.close-ok"
        async with opened(dialect=dialect) as three:
            assert (await three.ask(ALL)).name == "access.request-ok"
            await one.ask(spec.ChannelOpen())
            assert await one.refused(spec.AccessRequest(exclusive=True)) == ("connection", 403)


async def test_ticket_does_not_replace_the_permissions_of_the_user() -> None:
    container = Container(authorise=lambda access: access.action != "create")
    async with opened(dialect=Amqp103(container)) as client:
        ticket = (await client.ask(ALL))["ticket"]
        assert await client.refused(spec.QueueDeclare(ticket=ticket, queue="q")) == ("channel", 403)
    assert "q" not in container.nodes


# -- hooks ----------------------------------------------------------------------------------


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


async def test_client_that_goes_amid_a_content_leaves_nothing() -> None:
    container = Container()
    async with opened(container) as client:
        await client.carry(spec.BasicPublish(), b"hello", cut=2)
        assert isinstance(client, Client)
    assert not container.connected
