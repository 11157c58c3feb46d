"""Replies to requests: the body with 200, 204 where there is nothing more, and the status of each refusal."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import OneOctetStream
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.amqp10.spec.messaging import Target
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator import EventHubs
from trio_amqp10.testing.azure_emulator.constants import (
    ALREADY_EXISTS,
    ARGUMENT_ERROR,
    LOCK_LOST,
    NOT_FOUND,
    OUT_OF_RANGE,
    SESSION_LOCK_LOST,
)
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME
from trio_amqp10.testing.azure_emulator.request_response import Fields, RequestResponseNode

from .helpers import HOST, bus_of, wall, with_wall

PEER: Any = None


class Node(RequestResponseNode):
    """A node that answers with what it is given, or raises it."""

    def __init__(self, answer: Any) -> None:
        super().__init__("q/$management", PEER, Fields("status", "said", "condition"))
        self._made = answer

    async def _operate(self, request: Message, peer: Any) -> Any:
        if isinstance(self._made, Exception):
            raise self._made
        return self._made


async def reply_of(answer: Any) -> Message:
    return await Node(answer)._ask(PEER, Message("request"))


async def test_body_is_answered_with_200() -> None:
    reply = await reply_of({"n": 1})
    assert reply.body == {"n": 1}
    assert reply.application_properties == {"status": 200, "said": "OK"}


async def test_nothing_more_is_answered_with_204() -> None:
    reply = await reply_of(None)
    assert reply.body is None
    found = reply.application_properties
    assert (found["status"], found["condition"]) == (204, "com.microsoft:message-not-found")


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        (ARGUMENT_ERROR, 400),
        (OUT_OF_RANGE, 400),
        (Condition.UNAUTHORIZED_ACCESS, 401),
        (Condition.NOT_FOUND, 404),
        (NOT_FOUND, 404),
        (ALREADY_EXISTS, 409),
        (LOCK_LOST, 410),
        (SESSION_LOCK_LOST, 410),
        (Condition.NOT_IMPLEMENTED, 501),
        ("com.example:odd", 400),
    ],
)
async def test_refusal_is_answered_with_its_status_and_condition(condition: str, status: int) -> None:
    refusal = RefusedError(condition, "why not")
    reply = await reply_of(refusal)
    assert reply.body is None
    assert reply.application_properties == {
        "status": status,
        "said": "why not",
        "condition": refusal.condition,
    }


async def test_request_that_cannot_be_decoded_is_answered_too() -> None:
    reply = await reply_of(RemoteProtocolError("no map", Condition.DECODE_ERROR))
    assert reply.application_properties["status"] == 400
    assert reply.application_properties["condition"] == "amqp:decode-error"


@pytest.mark.parametrize("node", ["q/$management", "$management"])
async def test_request_is_settled_before_its_reply_is_read(node: str) -> None:
    """Clients on uamqp take a reply before that for a failure, and log an error."""
    with_wall()
    namespace: Any = EventHubs(wall_clock=wall) if node == "$management" else bus_of(q=None)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        acceptor = Acceptor(container_id="c", sasl=amqp.sasl.Server())
        nursery.start_soon(acceptor.run, OneOctetStream(ours), namespace.container.handle)
        async with amqp.open_connection(theirs) as conn:
            await conn.put_token(f"{HOST}/", sign_sas(f"{HOST}/", KEY_NAME, KEY, wall() + 60))
            async with (
                conn.open_receiver(node, credit=1, target=Target(address="replies")) as replies,
                conn.open_sender(node) as sender,
            ):
                asked = amqp.Message("x", reply_to="replies", application_properties={"operation": "x"})
                delivery = await sender.transmit(asked)
                await replies.receive()
                assert delivery.state is not None
        nursery.cancel_scope.cancel()
