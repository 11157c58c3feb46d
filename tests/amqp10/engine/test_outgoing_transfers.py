"""Deliveries that go out block by block: begun, appended to, finished or taken back (2.6.14, 2.7.5)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.transport import SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import Pair, begun, flow, sending
from .links import Owner, attach, attached, disposition, session_of


def test_begin_sends_the_first_transfer_and_takes_credit() -> None:
    link, script = sending(credit=1)
    out = link.begin(b"head", tag=b"t", message_format=3)
    assert out is not None
    script >> expected(
        "transfer", delivery_id=0, delivery_tag=b"t", message_format=3, more=True, payload=b"head"
    )
    assert (link.credit, link.delivery_count, link.unsettled, out.size) == (0, 1, 1, 4)
    assert out.in_progress
    assert link.in_progress
    assert not link.sendable()
    assert link.send(b"m") is None
    assert link.begin(b"m") is None


def test_blocks_follow_and_the_end_is_a_transfer_of_its_own() -> None:
    link, script = sending()
    link.owner = owner = Owner()
    out = link.begin()
    assert out is not None
    script >> expected("transfer", delivery_id=0, delivery_tag=b"\0\0\0\0", more=True, payload=b"")
    out.append(b"one")
    out.append(memoryview(b"two"))
    out.append(b"")
    script >> expected("transfer", delivery_id=None, more=True, payload=b"one")
    script >> expected("transfer", delivery_id=None, more=True, payload=b"two")
    assert not out.complete
    out.finish()
    script >> expected("transfer", delivery_id=None, more=None, payload=b"")
    assert out.complete
    assert not out.in_progress
    assert owner in script.touched
    assert link.send(b"next") is not None
    script >> expected("transfer", delivery_id=1, delivery_tag=b"\0\0\0\1")


@pytest.mark.parametrize(
    ("mode", "settled"), [(SenderSettleMode.SETTLED, True), (SenderSettleMode.UNSETTLED, False)]
)
def test_begin_settles_as_the_link_says(mode: SenderSettleMode, settled: bool) -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(snd_settle_mode=mode)
    script >> expected("attach")
    script << attach("x", 0, role=True) + flow(handle=0, link_credit=1)
    out = link.begin(b"m", settled=not settled)
    assert out is not None
    script >> expected("transfer", settled=settled)
    assert link.unsettled == (not settled)
    out.abort()
    assert link.unsettled == 0


def test_block_waits_for_the_window_and_the_owner_is_woken_when_it_is_gone() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    script << flow(incoming_window=2)
    out = link.begin(b"")
    assert out is not None
    out.append(bytes(1000))
    assert 0 < out.pending < 1000
    link.owner = owner = Owner()
    with pytest.raises(LocalProtocolError, match="octets of the block before"):
        out.append(b"more")
    script >> expected("transfer") >> expected("transfer")
    assert owner not in script.touched
    script << flow(next_incoming_id=2, incoming_window=3)
    assert owner in script.touched
    assert out.pending == 0
    assert out.in_progress
    script >> expected("transfer", more=True) >> expected("transfer", more=True)
    out.append(b"last")
    out.finish()
    script >> expected("transfer", payload=b"last", more=True)
    assert not out.complete
    script << flow(next_incoming_id=5, incoming_window=1)
    script >> expected("transfer", payload=b"", more=None)
    assert out.complete


def test_first_octets_larger_than_a_frame_follow_in_others() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    out = link.begin(bytes(1200))
    assert out is not None
    out.finish()
    script.collect()
    frames = script.inbox.frames
    assert [f["more"] for f in frames] == [True, True, None]
    assert sum(len(f.payload) for f in frames) == 1200


def test_append_and_finish_raise_when_the_delivery_is_over() -> None:
    link, _ = sending()
    out = link.begin(b"m")
    assert out is not None
    out.finish()
    for call in (partial(out.append, b"m"), out.finish):
        with pytest.raises(LocalProtocolError, match="it is over"):
            call()
    out.abort()
    assert out.complete
    out = link.begin(b"m")
    assert out is not None
    out.abort()
    for call in (partial(out.append, b"m"), out.finish):
        with pytest.raises(LocalProtocolError, match="it is over"):
            call()


def test_append_raises_and_sends_nothing_when_the_peer_takes_no_message_so_large() -> None:
    link, script = sending(max_message_size=10)
    out = link.begin(b"12345")
    assert out is not None
    script >> expected("transfer")
    with pytest.raises(LocalProtocolError, match="a message of 11 octets"):
        out.append(b"123456")
    script.expect_nothing()
    out.append(b"12345")
    assert out.size == 10


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tag": b"t" * 33}, "tag has 33 octets"),
        ({"octets": bytes(101)}, "message of 101 octets"),
        ({"message_format": -1}, "message-format"),
    ],
)
def test_begin_raises_and_changes_nothing_when_a_rule_is_broken(options: dict[str, Any], text: str) -> None:
    link, script = sending(max_message_size=100)
    with pytest.raises(LocalProtocolError, match=text):
        link.begin(**options)
    assert (link.credit, link.unsettled, link.in_progress) == (10, 0, False)
    script.expect_nothing()


# -- taken back -----------------------------------------------------------------------------------


def test_abort_is_a_transfer_and_settles() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    link.owner = link_owner = Owner()
    link.watch_unsettled = True
    out = link.begin(b"m")
    assert out is not None
    out.delivery.watcher = owner = Owner()
    script >> expected("transfer")
    script.collect()
    out.abort()
    script >> expected("transfer", handle=0, aborted=True, more=None, payload=b"")
    script.expect_nothing()
    assert owner in script.touched
    assert link_owner in script.touched
    assert out.delivery.settled
    assert not out.complete
    assert link.unsettled == 0
    assert not link.session.settlement.outgoing
    assert link.sendable()


def test_abort_waits_for_the_window_and_drops_what_is_pending() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    script << flow(incoming_window=1)
    out = link.begin(bytes(2000))
    assert out is not None
    script >> expected("transfer", more=True)
    out.abort()
    out.abort()
    script.expect_nothing()
    assert out.in_progress
    script << flow(next_incoming_id=1, incoming_window=5)
    script >> expected("transfer", aborted=True)
    script.expect_nothing()
    assert not link.in_progress


def test_abort_after_the_receiver_has_settled_is_still_sent() -> None:
    link, script = sending()
    out = link.begin(b"m")
    assert out is not None
    script >> expected("transfer")
    script << disposition(True, 0, settled=True, state=("rejected", {}))
    assert link.unsettled == 0
    out.abort()
    script >> expected("transfer", aborted=True)
    assert link.unsettled == 0


def test_detach_aborts_what_was_begun() -> None:
    link, script = sending()
    out = link.begin(b"m")
    assert out is not None
    link.detach()
    script >> expected("transfer", more=True) >> expected("transfer", aborted=True) >> expected("detach")
    assert not out.in_progress
    with pytest.raises(LocalProtocolError, match="it is over"):
        out.append(b"m")
    out.abort()
    script << frame("detach", handle=0, closed=True)
    assert link.state is LinkState.GONE
    script.expect_nothing()


# -- with others, and at the other end ------------------------------------------------------------


def test_streams_and_messages_take_turns_frame_by_frame() -> None:
    link, script = sending(remote={"max_frame_size": 512}, credit=10)
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=5, incoming_window=2)
    out = link.begin(b"m")
    assert out is not None
    assert other.send(bytes(1500)) is not None
    out.append(bytes(1500))
    out.finish()
    script << flow(next_incoming_id=2, incoming_window=100)
    script.collect()
    assert [f["handle"] for f in script.inbox.frames] == [0, 1, 1, 0, 1, 0, 1, 0, 0]


@given(
    st.integers(512, 700),
    st.integers(1, 6),
    st.lists(st.binary(max_size=1500), max_size=6),
    st.booleans(),
    st.integers(1, 999),
)
def test_stream_arrives_as_it_was_sent(
    frame_size: int, window: int, blocks: list[bytes], streaming: bool, chunk: int
) -> None:
    b = Connection("b", limits=Limits(max_frame_size=frame_size, incoming_window=window, stream_octets=1))
    pair = Pair(b=b).open()
    sender, receiver = pair.link(credit=0)
    if streaming:
        receiver.stream()
    receiver.set_credit(1)
    pair.run()
    out = sender.begin(b"begin")
    assert out is not None
    got = b""

    def read() -> None:
        nonlocal got
        inflow = receiver.queue[0].inflow if receiver.queue else None
        while inflow is not None and (octets := inflow.take()):
            got += octets

    def run() -> None:
        for _ in range(100):
            while pair.move(pair.a, pair.b, chunk) | pair.move(pair.b, pair.a):
                pass
            read()

    for block in blocks:
        out.append(block)
        while out.pending:
            run()
    out.finish()
    while not out.complete:
        run()
    run()
    delivery = receiver.queue.popleft()
    assert (got or delivery.payload) == b"begin" + b"".join(blocks)
    assert delivery.inflow is None or delivery.inflow.complete
    assert b.partial_octets == receiver.session.unread == 0
    assert not receiver.inflows
