"""``strict`` as users give it: all, none, or rule by rule, on either side (see ``Strict``)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header
from trio_amqp10.amqp10.message import encode_message
from trio_amqp10.testing import open_container

from .helpers import idle, served

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection

TWICE = bytes.fromhex("c10904a1016b41a1016b42")
MESSAGE = b"\x00\x53\x74" + TWICE + b"\x00\x53\x75\xa0\x01x"
"""Application properties that name one key twice, and one octet of data."""

OUTCOME = b"\x00\x53\x44"
"""What an outcome begins with, behind its frame header."""


async def send_it(conn: Connection) -> None:
    """A handler whose receivers get that message."""
    async for link in conn.incoming_links():
        assert isinstance(link, amqp.IncomingSender)
        async with link.accept() as sender:
            await sender.send(amqp.Message.from_payload(MESSAGE))


@pytest.mark.parametrize("strict", [False, amqp.Strict(duplicate_map_keys=False)])
@pytest.mark.parametrize("streaming", [False, True])
async def test_dialling_reads_messages_as_tolerantly_as_it_is_told(strict: Any, streaming: bool) -> None:
    async with (
        served(send_it, strict=strict) as conn,
        conn.open_receiver("q", streaming=streaming) as receiver,
    ):
        delivery = await receiver.receive()
        assert (await delivery.head()).application_properties == {"k": False}
        assert delivery.message.application_properties == {"k": False}
        delivery.accept()


@pytest.mark.parametrize("strict", [None, True, amqp.Strict()])
@pytest.mark.logs_errors
async def test_dialling_refuses_such_messages_otherwise(strict: Any) -> None:
    async with served(send_it, strict=strict) as conn, conn.open_receiver("q") as receiver:
        delivery = await receiver.receive()
        with pytest.raises(amqp.RemoteProtocolError) as caught:
            _ = delivery.message.application_properties
        assert (caught.value.rule, caught.value.scope) == ("duplicate-map-keys", "link")
        delivery.release()
        await wait_all_tasks_blocked()  # the handler fails by that, not by the end of the connection


async def test_container_reads_messages_as_tolerantly_as_its_connections_are_told() -> None:
    async with open_container() as container:
        got: list[Any] = []

        @container.consumer("in")
        async def take(delivery: amqp.Delivery) -> None:
            got.append(delivery.message.application_properties)

        async with container.connect(strict=False) as conn, conn.open_sender("in") as sender:
            await sender.send(amqp.Message.from_payload(MESSAGE))
        async with container.connect(strict=True) as conn, conn.open_sender("in") as sender:
            with pytest.raises(amqp.DeliveryRejectedError):
                await sender.send(amqp.Message.from_payload(MESSAGE))
    assert got == [{"k": False}]


@pytest.mark.parametrize(("strict", "goes_on"), [(True, False), (False, True), (None, True)])
async def test_service_takes_sasl_frames_as_large_as_it_is_told(strict: bool | None, goes_on: bool) -> None:
    sasl = amqp.sasl.Server(users={"guest": "secret"})
    async with trio.open_nursery() as nursery:
        serve = partial(amqp.serve, idle, "amqp://127.0.0.1:0", sasl=sasl, strict=strict)
        [listener] = await nursery.start(serve)
        async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
            init = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0guest\0secret", doff=130)
            assert len(init) > 512
            await stream.send_all(header("sasl") + init)
            received = b""
            while OUTCOME not in received and (octets := await stream.receive_some()):
                received += octets
            assert (OUTCOME in received) is goes_on
        nursery.cancel_scope.cancel()


async def test_error_that_the_peer_is_told_names_the_rule() -> None:
    async def overdo(conn: Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                await sender.transmit("one")
                sender._link.credit += 1
                # In one write with "one": a receive() that waits for it would grant it.
                sender._link.send(encode_message("two"), False)
                await idle(conn)

    async with served(overdo) as conn:
        with pytest.raises(amqp.LinkDetachedError, match=r"\(2.6.7\) \[link-credit\]"):
            async with conn.open_receiver("q", credit=0) as receiver:
                receiver.grant(1)
                await receiver.receive()
