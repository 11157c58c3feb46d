"""Test with a scripted peer that breaks the rules, frame by frame."""

import pytest
from trio.testing import trio_test

import trio_amqp10 as amqp
from trio_amqp10.testing import ScriptedPeer, Transfer, scripted_stream


async def order(connection: amqp.Connection, what: str) -> bool:
    """The tested code: send an order; return whether the peer accepted it."""
    async with connection.open_sender("orders") as sender:
        try:
            await sender.send(what)
        except amqp.DeliveryError:
            return False
    return True


async def forgetful(peer: ScriptedPeer) -> None:
    """Receive a message, and answer with octets that are no frame."""
    await peer.accept_open()
    await peer.accept_begin()
    await peer.accept_attach(credit=1, target=amqp.Target(address="orders"))
    await peer.expect(Transfer, delivery_id=0)
    await peer.send(b"\x00\x00\x00\x04")


@trio_test
async def test_order_does_not_take_a_broken_peer_for_a_refusal() -> None:
    with pytest.raises(amqp.RemoteProtocolError, match="frame size 4"):
        async with scripted_stream(forgetful) as stream, amqp.open_connection(stream) as connection:
            await order(connection, "tea")
