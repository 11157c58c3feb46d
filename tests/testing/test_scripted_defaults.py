"""The usual openings and answers of a script."""

from __future__ import annotations

from typing import Any

import pytest

import trio_amqp10 as amqp
from tests.naive.performatives import frame
from trio_amqp10.testing import (
    Attach,
    Begin,
    Flow,
    SaslCode,
    ScriptedPeer,
    Transfer,
    scripted_stream,
)

from .test_scripted_peer import peers


@pytest.mark.parametrize("sasl", [amqp.sasl.Anonymous(), amqp.sasl.Plain("ada", "enigma"), None])
async def test_accept_open_takes_a_client_with_sasl_or_without(sasl: Any) -> None:
    async def script(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_close()

    async with scripted_stream(script) as stream, amqp.open_connection(stream, sasl=sasl) as connection:
        assert connection.remote.container_id == "scripted peer"


async def test_accept_sasl_refuses_when_told_to() -> None:
    async def script(peer: ScriptedPeer) -> None:
        await peer.expect_header("sasl")
        await peer.accept_sasl("PLAIN", code=SaslCode.AUTH)

    with pytest.raises(amqp.SecurityError):
        async with (
            scripted_stream(script) as stream,
            amqp.open_connection(stream, sasl=amqp.sasl.Plain("ada", "wrong")),
        ):
            raise AssertionError("it must not open")


async def test_accept_open_wants_a_header() -> None:
    with pytest.raises(AssertionError, match="expected the protocol header"):
        await (await peers(frame("open", container_id="x"))).accept_open()


async def test_accept_attach_answers_a_receiver_without_credit() -> None:
    peer = await peers(frame("attach", channel=4, name="l", handle=9, role=True, source=("source", {})))
    await peer.accept_attach(credit=5, properties={"a": 1})
    got = ScriptedPeer(peer.other)  # type: ignore[attr-defined]
    answer = await got.expect(
        Attach, channel=4, handle=9, role=False, initial_delivery_count=0, properties={"a": 1}
    )
    assert answer.name == "l"
    await got.expect_nothing(0.01)


async def test_grant_counts_what_came_on_the_link() -> None:
    peer = await peers(
        frame("begin", next_outgoing_id=2**32 - 1, incoming_window=1, outgoing_window=1),
        frame("attach", name="l", handle=9, role=False, initial_delivery_count=7, target=("target", {})),
        frame("transfer", handle=9, more=True),
        frame("transfer", handle=9),
    )
    for kind in (Begin, Attach, Transfer, Transfer):
        await peer.expect(kind)
    await peer.send(Begin(remote_channel=0, next_outgoing_id=5, incoming_window=1, outgoing_window=1))
    await peer.send(Transfer(handle=1))
    await peer.grant(3, handle=9)
    got = ScriptedPeer(peer.other)  # type: ignore[attr-defined]
    flow = await got.skip_to(Flow)
    assert (flow.next_incoming_id, flow.delivery_count, flow.next_outgoing_id, flow.link_credit) == (
        1,
        8,
        6,
        3,
    )
