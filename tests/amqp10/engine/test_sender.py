"""The sending end: credit, windows, parts of a message, drain (2.6.7, 2.7.5)."""

# pyright: reportUnusedExpression=false, reportPrivateUsage=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.link import FAR
from trio_amqp10.amqp10.engine.serial_numbers import HALF, MASK
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Received, Rejected, Released, Source, Target
from trio_amqp10.amqp10.spec.transactions import Declared, TransactionalState
from trio_amqp10.amqp10.spec.transport import Flow, SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import Pair, begun, flow, sending
from .links import Owner, attach, attached, disposition, session_of, snapshot

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.sender import SenderLink

# -- what goes out ------------------------------------------------------------------------------


def test_send_writes_a_transfer_and_counts() -> None:
    link, script = sending(credit=2)
    delivery = link.send(b"payload")
    assert delivery is not None
    script >> expected(
        "transfer",
        channel=0,
        handle=0,
        delivery_id=0,
        delivery_tag=b"\0\0\0\0",
        message_format=0,
        settled=False,
        more=None,
        payload=b"payload",
    )
    assert (link.credit, link.delivery_count, link.unsettled) == (1, 1, 1)
    assert (delivery.delivery_id, delivery.tag, delivery.settled) == (0, b"\0\0\0\0", False)
    link.send(b"2", settled=True)
    script >> expected("transfer", delivery_id=1, delivery_tag=b"\0\0\0\1", settled=True)
    assert (link.credit, link.unsettled) == (0, 1)
    script.expect_nothing()


def test_send_says_tag_format_and_state_when_they_are_given() -> None:
    link, script = sending()
    state = TransactionalState(txn_id=b"txn")
    link.send(b"m", tag=b"t", message_format=7, state=state)
    script >> expected(
        "transfer",
        delivery_tag=b"t",
        message_format=7,
        state=("transactional-state", {"txn_id": b"txn"}),
        payload=b"m",
    )
    link.send(b"m", message_format=1)
    script >> expected("transfer", delivery_id=1, delivery_tag=b"\0\0\0\0", message_format=1)
    link.send(b"m")
    script >> expected("transfer", delivery_id=2, delivery_tag=b"\0\0\0\1")


@pytest.mark.parametrize("size", [1, 440, 475, 2000])
def test_each_send_says_its_own_state_whatever_the_sends_before_said(size: int) -> None:
    link, script = sending(credit=20, remote={"max_frame_size": 512})
    states = [TransactionalState(txn_id=each) for each in (b"a", b"b", b"long" * 10)]
    for number, state in enumerate(
        [None, states[0], states[0], states[1], None, states[2], states[1], states[2]]
    ):
        link.send(bytes(size), state=state)
        wanted = None if state is None else ("transactional-state", {"txn_id": state.txn_id})
        frame = script.take(expected("transfer"))
        assert (frame["delivery_id"], frame["delivery_tag"]) == (number, number.to_bytes(4, "big"))
        payload = frame.payload
        while frame["more"]:
            assert frame["state"] == wanted
            frame = script.take(expected("transfer"))
            payload += frame.payload
        assert (frame["state"], payload) == (wanted, bytes(size))


@pytest.mark.parametrize(
    ("mode", "asked", "sent"),
    [
        (SenderSettleMode.MIXED, True, True),
        (SenderSettleMode.MIXED, False, False),
        (SenderSettleMode.SETTLED, False, True),
        (SenderSettleMode.UNSETTLED, True, False),
    ],
)
@pytest.mark.parametrize("size", [1, 2000])
def test_send_settles_as_the_mode_of_the_link_says(
    mode: SenderSettleMode, asked: bool, sent: bool, size: int
) -> None:
    session, script = begun(remote={"max_frame_size": 512})
    link = session.sender("x")
    link.attach(snd_settle_mode=mode)
    script >> expected("attach")
    script << attach("x", 0, role=True) + flow(handle=0, link_credit=1)
    delivery = link.send(bytes(size), settled=asked)
    assert delivery is not None
    script >> expected("transfer", settled=sent)
    assert delivery.settled is delivery.sent_settled is sent
    assert link.unsettled == (not sent)


def test_send_does_nothing_when_it_cannot() -> None:
    link, script = sending(credit=0)
    before = snapshot(link)
    assert not link.sendable()
    assert link.send(b"m") is None
    assert snapshot(link) == before
    script.expect_nothing()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"tag": b"t" * 33}, "the delivery tag has 33 octets: expected at most 32"),
        ({"state": Rejected(error=None), "payload": b"x" * 101}, "a message of 101 octets.* takes 100"),
        ({"payload": b"x" * 101}, "amqp:link:message-size-exceeded"),
        ({"state": TransactionalState(txn_id=b"t" * 490)}, "frame-size-too-small: the transfer has"),
        ({"message_format": -1}, "message-format"),
        ({"state": object()}, "state"),
    ],
)
def test_send_raises_and_changes_nothing_when_a_rule_is_broken(options: dict[str, Any], text: str) -> None:
    link, script = sending(remote={"max_frame_size": 512}, max_message_size=100)
    before = snapshot(link)
    with pytest.raises(LocalProtocolError, match=text):
        link.send(**{"payload": b"m", **options})
    assert snapshot(link) == before
    script.expect_nothing()


@pytest.mark.parametrize("limit", [None, 0])
def test_send_takes_a_message_of_any_size_when_the_peer_names_none(limit: int | None) -> None:
    link, script = sending(max_message_size=limit, remote={"max_frame_size": 65_536})
    link.send(bytes(100_000))
    first = script.expect("transfer", more=True)
    rest = script.expect("transfer", more=None)
    assert len(first.payload) + len(rest.payload) == 100_000
    assert not link.in_progress


def test_send_takes_a_message_as_large_as_the_peer_names() -> None:
    link, script = sending(max_message_size=600, remote={"max_frame_size": 512})
    assert link.send(bytes(600)) is not None
    script >> expected("transfer", more=True) >> expected("transfer", more=None)


# -- credit -------------------------------------------------------------------------------------


@given(
    st.integers(0, MASK),
    st.integers(0, MASK) | st.integers(0, 50),
    st.integers(-50, 50) | st.integers(-(HALF - 60), HALF - 60),
    st.booleans(),
)
def test_credit_is_the_formula_of_the_standard(count: int, granted: int, behind: int, unknown: bool) -> None:
    link, _ = sending(credit=0)
    link.delivery_count = count
    link._first_count = base = (count - behind) & MASK
    link.on_flow(
        Flow(
            next_incoming_id=0,
            incoming_window=1,
            next_outgoing_id=0,
            outgoing_window=1,
            delivery_count=None if unknown else base,
            link_credit=granted,
        )
    )
    wanted = min(granted, FAR) - behind
    if -HALF <= wanted < HALF:
        assert link.credit == max(0, wanted)
    assert 0 <= link.credit < HALF


def test_credit_stays_when_a_flow_says_none() -> None:
    link, script = sending(credit=5)
    script << flow(handle=0, delivery_count=0, drain=True)
    assert (link.credit, link.drain) == (5, True)


def test_credit_that_crossed_what_was_sent_is_less_by_that() -> None:
    link, script = sending(credit=5)
    for _ in range(3):
        link.send(b"m")
    script << flow(handle=0, delivery_count=1, link_credit=5)
    assert link.credit == 3
    script << flow(handle=0, delivery_count=0, link_credit=1)
    assert link.credit == 0


def test_row_52_flow_of_the_links_receiver_counts_without_its_available() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=4, available=99)
    assert (link.credit, link.available) == (4, None)


def test_delivery_count_and_delivery_id_wrap_and_credit_stays_right() -> None:
    pair = Pair().open()
    sender, receiver = pair.link(credit=0)
    session = sender.session
    sender.delivery_count = receiver.delivery_count = MASK - 2
    sender._next_tag = MASK - 1
    session.next_delivery_id = MASK - 3
    for _ in range(4):
        receiver.set_credit(3)
        pair.run()
        for _ in range(3):
            assert sender.send(b"m") is not None
        assert sender.send(b"m") is None
        pair.run()
    assert [d.delivery_id for d in receiver.queue] == [(MASK - 3 + n) & MASK for n in range(12)]
    assert sender.delivery_count == receiver.delivery_count == 9
    assert receiver.queue[2].tag == b"\0\0\0\0"
    for delivery in receiver.queue:
        delivery.accept()
    pair.run()
    assert sender.unsettled == 0
    assert session.windows.next_outgoing_id == 12


# -- windows and room ---------------------------------------------------------------------------


def test_send_waits_for_the_window_and_is_woken_by_it() -> None:
    link, script = sending(credit=10)
    link.owner = owner = Owner()
    script << flow(incoming_window=1)
    assert link.send(b"m") is not None
    assert link.send(b"m") is None
    link.await_sendable()
    link.await_sendable()
    assert link.session.hungry == [link]
    script << flow(next_incoming_id=0, incoming_window=1)
    assert owner not in script.touched
    script << flow(next_incoming_id=1, incoming_window=1)
    assert owner in script.touched
    assert link.session.hungry == []
    assert link.send(b"m") is not None


def test_send_waits_for_room_in_the_write_buffer_and_is_woken_when_octets_are_taken() -> None:
    link, script = sending(Limits(output_soft=1000), credit=10)
    link.owner = owner = Owner()
    assert link.send(bytes(1000)) is not None
    assert link.send(b"m") is None
    link.await_sendable()
    link.session.connection.receive_data(flow(next_incoming_id=0), 0.0)
    assert not owner.touched  # the window is wide open, and there is no room
    script.collect().collect()  # the first takes octets, and so makes the room
    assert owner in script.touched
    assert link.sendable()


@given(st.integers(1, 5), st.integers(512, 700), st.lists(st.integers(0, 4000), min_size=1, max_size=4))
def test_message_in_parts_keeps_to_window_and_frame_size(
    window: int, frame_size: int, sizes: list[int]
) -> None:
    link, script = sending(credit=10, remote={"max_frame_size": frame_size})
    script << flow(incoming_window=0)
    read = 0
    for number, size in enumerate(sizes):
        payload = bytes([number]) * size
        got, more, first_seen = b"", True, False
        while more:
            script << flow(next_incoming_id=read, incoming_window=window)
            if not got and not link.in_progress:
                assert link.send(payload) is not None
            script.collect()
            frames = list(script.inbox.frames)
            script.inbox.frames.clear()
            assert 1 <= len(frames) <= window
            for each in frames:
                assert len(each.raw) <= frame_size
                assert each["delivery_id"] == (None if first_seen else number)
                first_seen = True
                got += each.payload
                more = bool(each["more"])
            read += len(frames)
        assert got == payload
        assert not link.in_progress
        assert link.session.partials == {}
    script.expect_nothing()


def test_every_part_of_a_message_says_its_state() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    link.send(bytes(1200), state=TransactionalState(txn_id=b"t"))
    script.collect()
    frames = list(script.inbox.frames)
    assert len(frames) == 3
    assert frames[0]["state"] is not None
    assert [one["state"] for one in frames] == [frames[0]["state"]] * 3
    assert b"".join(one.payload for one in frames) == bytes(1200)


def test_settlement_of_a_delivery_in_progress_is_in_its_next_transfer() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    script << flow(incoming_window=1)
    delivery = link.send(bytes(1200))
    assert delivery is not None
    script.collect()
    script.inbox.frames.clear()
    delivery.settle()
    script.expect_nothing()
    script << flow(next_incoming_id=1, incoming_window=10)
    script >> expected("transfer", settled=True, more=True) >> expected("transfer", settled=True, more=None)
    script.expect_nothing()
    assert delivery.settled


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("outcome", ["accepted", "released", "modified"])
def test_message_in_parts_is_sent_to_its_end_when_its_outcome_comes_before(
    outcome: str, settled: bool
) -> None:
    link, script = sending(remote={"max_frame_size": 512})
    script << flow(incoming_window=1)
    delivery = link.send(bytes(1200))
    assert delivery is not None
    got = script.expect("transfer", delivery_id=0, more=True).payload
    script << disposition(True, 0, settled=settled, state=(outcome, {}))
    assert delivery.settled
    assert delivery.state is not None
    script << flow(next_incoming_id=1, incoming_window=9)
    told = None if settled else True
    got += script.expect("transfer", more=True, settled=told, aborted=None).payload
    got += script.expect("transfer", settled=told, aborted=None).payload
    assert got == bytes(1200)
    script.expect_nothing()
    assert link.send(b"next") is not None


def test_messages_in_parts_take_turns_on_one_session() -> None:
    link, script = sending(credit=10, remote={"max_frame_size": 512})
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=5)
    link.send(bytes(1500))
    other.send(bytes(1500))
    script.collect()
    assert [f["handle"] for f in script.inbox.frames] == [0, 1] * 4


def test_owner_is_woken_when_a_message_in_parts_has_gone_out() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    link.owner = owner = Owner()
    script << flow(incoming_window=2)
    link.send(bytes(1000))
    assert link.in_progress
    assert not link.sendable()
    script.collect()
    assert owner not in script.touched
    script << flow(next_incoming_id=2, incoming_window=2)
    assert owner in script.touched
    assert not link.in_progress


# -- detach in the middle -----------------------------------------------------------------------


@pytest.mark.parametrize("room", [2, 1])
def test_detach_aborts_a_message_in_progress_when_the_window_has_room(room: int) -> None:
    link, script = sending(remote={"max_frame_size": 512}, credit=1)
    script << flow(incoming_window=room)
    link.send(bytes(5000))
    link.detach()
    script >> expected("transfer", delivery_id=0, more=True)
    if room > 1:
        script >> expected("transfer", handle=0, aborted=True, more=None, payload=b"")
    script >> expected("detach", handle=0, closed=True)
    script.expect_nothing()
    assert link.session.windows.remote_incoming_window == 0
    assert not link.in_progress
    script << flow(next_incoming_id=room, incoming_window=10)
    script.expect_nothing()


@pytest.mark.parametrize("window", [1, 2, 100])
def test_detach_in_the_middle_of_a_message_leaves_the_receiver_with_nothing_of_it(window: int) -> None:
    b = Connection("b", limits=Limits(max_frame_size=512, incoming_window=window))
    pair = Pair(Connection("a", limits=Limits(output_soft=2000)), b).open()
    sender, receiver = pair.link()
    sender.send(bytes(10_000))
    sender.detach()
    pair.run()
    assert not receiver.queue
    assert b.partial_octets == 0
    assert sender.state is receiver.state is LinkState.GONE
    again, receiver = _second(pair, sender)
    again.send(b"next")
    pair.run()
    assert [d.payload for d in receiver.queue] == [b"next"]


def _second(pair: Pair, first: SenderLink) -> tuple[SenderLink, Any]:
    again = session_of(first).sender("again")
    again.attach(source=Source(), target=Target())
    pair.run()
    receiver: Any = next(
        e.link for e in pair.events[pair.b] if isinstance(e, LinkAttached) and e.link.name == "again"
    )
    receiver.set_credit(5)
    pair.run()
    return again, receiver


# -- drain --------------------------------------------------------------------------------------


def test_drained_gives_the_credit_up_and_says_so() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=5, drain=True)
    link.send(b"m")
    link.drained()
    script >> expected("transfer")
    script >> expected("flow", handle=0, delivery_count=5, link_credit=0, drain=True)
    assert (link.credit, link.delivery_count) == (0, 5)
    assert link.send(b"m") is None
    script.expect_nothing()


def test_drained_does_nothing_when_nobody_asked_for_it() -> None:
    link, script = sending(credit=5)
    link.drained()
    assert link.credit == 5
    script.expect_nothing()


# -- row 54: outcomes ---------------------------------------------------------------------------


NAMES = {
    "amqp:accepted:list": Accepted(),
    "amqp:rejected:list": Rejected(),
    "amqp:released:list": Released(),
    "amqp:modified:list": Modified(delivery_failed=True),
}


def with_outcomes(source: Source | None) -> tuple[SenderLink, Script]:
    session, script = begun()
    link = session.sender("x")
    link.attach(source=source)
    script >> expected("attach")
    script << attach("x", 0, role=True) + flow(handle=0, link_credit=10)
    return link, script


@pytest.mark.parametrize("source", [None, Source(), Source(outcomes=())])
@pytest.mark.parametrize("state", NAMES.values())
def test_row_54_every_outcome_is_permitted_when_the_source_names_none(
    source: Source | None, state: Any
) -> None:
    link, _ = with_outcomes(source)
    assert link.permitted(state) is state


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("default", [None, Modified(undeliverable_here=True)])
def test_row_54_outcome_outside_the_list_reads_as_the_default_or_released(name: str, default: Any) -> None:
    link, _ = with_outcomes(Source(outcomes=(name,), default_outcome=default))
    for each, state in NAMES.items():
        wanted = state if each == name else default or Released()
        assert link.permitted(state) == wanted
        in_txn = TransactionalState(txn_id=b"t", outcome=state)
        assert link.permitted(in_txn) == TransactionalState(txn_id=b"t", outcome=wanted)


@pytest.mark.parametrize(
    "state",
    [
        Received(section_number=1, section_offset=2),
        Declared(txn_id=b"t"),
        TransactionalState(txn_id=b"t"),
    ],
)
def test_row_54_state_that_is_no_standard_outcome_is_left_alone(state: Any) -> None:
    link, _ = with_outcomes(Source(outcomes=("amqp:accepted:list",)))
    assert link.permitted(state) is state


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize(
    ("permitted", "said"), [("amqp:accepted:list", "rejected"), ("amqp:released:list", "accepted")]
)
def test_row_54_receiver_that_leaves_the_list_is_taken_at_the_default(
    permitted: str, said: str, settled: bool
) -> None:
    link, script = with_outcomes(Source(outcomes=(permitted,)))
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("transfer")
    script << disposition(True, 0, settled=settled, state=(said, {}))
    assert isinstance(delivery.state, Released)
    assert delivery.settled


def test_row_54_second_terminal_state_is_ignored() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("transfer")
    script << disposition(True, 0, settled=False) << disposition(True, 0, state=("rejected", {}))
    script >> expected("disposition", role=False, first=0, settled=True)
    script.expect_nothing()
    assert isinstance(delivery.state, Accepted)


# -- row 62 -------------------------------------------------------------------------------------


def test_row_62_granted_credit_is_never_ignored_and_what_is_unsettled_can_be_counted() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=80)
    for n in range(80):
        assert link.send(b"m") is not None
        assert link.unsettled == n + 1
    assert link.send(b"m") is None
    script << frame("disposition", role=True, first=10, last=19, settled=True)
    assert link.unsettled == 70
    assert len(link.session.settlement.outgoing) == 70


def test_flow_says_in_which_transaction_to_acquire() -> None:
    link, script = sending()
    assert link.txn_id is None
    script << flow(handle=0, link_credit=1, properties={"txn-id": b"t"})
    assert link.txn_id == b"t"
    script << flow(handle=0, link_credit=1, properties={"other": 1}) << flow(handle=0, link_credit=1)
    assert link.txn_id == b"t"


def test_flow_carries_properties_when_there_are_some() -> None:
    link, script = sending()
    link.flow_properties = {"txn-id": b"t"}
    script << flow(handle=0, link_credit=1, echo=True)
    script >> expected("flow", handle=0, properties={"txn-id": b"t"})
