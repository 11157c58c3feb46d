"""10.3 as a dialect: which headers it claims, who may come in, and who is sent elsewhere."""

from __future__ import annotations

import pytest

from tests.container.served import served
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.wire.frames import PROTOCOL_HEADER
from trio_amqp10.container import Container
from trio_amqp10.container.dialects import dialects_of
from trio_amqp10.sasl import Server

from .script import dialled, opened


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
