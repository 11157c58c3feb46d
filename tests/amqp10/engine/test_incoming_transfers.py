"""Transfers put together into deliveries, and what breaks the rules of 2.7.5."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.engine.states import LinkState, SessionState
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.core.errors import Condition

from .helpers import Pair, begun, receiving, refused
from .links import Owner, attach, attached, disposition, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.session import Session


def error(condition: str) -> tuple[str, dict[str, Any]]:
    return ("error", {"condition": condition})


RECEIVED = ("received", {"section_number": 0, "section_offset": 0})
INVALID = expected("detach", handle=0, closed=True, error=error("amqp:invalid-field"))


def two_links(limits: Limits | None = None, credit: int = 20) -> tuple[ReceiverLink, ReceiverLink, Script]:
    """Two receivers on one session, on the peer's handles 0 and 1."""
    session, script = begun(limits)
    links = session.receiver("x"), session.receiver("y")
    for handle, link in enumerate(links):
        attached(script, session, link, handle, credit=credit)
    return *links, script


# -- whole deliveries ---------------------------------------------------------------------------


def test_transfer_whole_in_one_frame_is_a_delivery() -> None:
    link, script = receiving()
    link.owner = owner = Owner()
    script << transfer(0, 7, b"payload", delivery_tag=b"t", message_format=5)
    delivery = link.queue.popleft()
    assert (delivery.delivery_id, delivery.tag, delivery.message_format) == (7, b"t", 5)
    assert (delivery.payload, delivery.settled, delivery.state, delivery.link) == (
        b"payload",
        False,
        None,
        link,
    )
    assert script.touched == [owner]
    assert link.credit == 9


@pytest.mark.parametrize("settled", [True, False, None])
def test_transfer_is_unsettled_unless_it_says_settled(settled: bool | None) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"first", settled=settled) + transfer(0, 1, b"second", settled=settled)
    assert [d.settled for d in link.queue] == [bool(settled)] * 2
    assert len(link.session.settlement.incoming) == (0 if settled else 2)


def test_transfer_of_a_general_shape_is_the_same_delivery() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"a")
    script << frame(
        "transfer", handle=0, delivery_id=1, delivery_tag=b"\0\0\0\1", payload=b"a", symbolic=True, pad=True
    )
    script << transfer(0, 2, b"a", list_code=0xD0)
    assert [(d.delivery_id, d.payload, d.settled, d.message_format) for d in link.queue] == [
        (n, b"a", False, 0) for n in range(3)
    ]


def test_transfer_state_of_the_sender_is_kept() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", state=("transactional-state", {"txn_id": b"t"}))
    assert link.queue[0].remote_state.txn_id == b"t"


def test_transfers_of_our_own_sender_keep_the_state_of_their_transaction() -> None:
    pair = Pair().open()
    sender, receiver = pair.link()
    states = [None, TransactionalState(txn_id=b"t"), TransactionalState(txn_id=b"u"), None]
    for state in states:
        sender.send(b"m", state=state)
    pair.run()
    assert [delivery.remote_state for delivery in receiver.queue] == states
    assert [delivery.payload for delivery in receiver.queue] == [b"m"] * 4


def test_delivery_id_wraps_at_the_end_of_its_range() -> None:
    link, script = receiving()
    script << transfer(0, MASK - 1, b"a") + transfer(0, MASK, b"b") + transfer(0, 0, b"c")
    assert [d.delivery_id for d in link.queue] == [MASK - 1, MASK, 0]
    for delivery in link.queue:
        delivery.accept()
    script >> expected("disposition", role=True, first=MASK - 1, last=0, settled=True)
    assert not link.session.settlement.incoming
    script.expect_nothing()


# -- row 49: the fields of a transfer -----------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(transfer(0, None, b"m", delivery_tag=b"t"), id="no delivery-id"),
        pytest.param(transfer(0, 0, b"m", delivery_tag=None), id="no tag"),
        pytest.param(transfer(0, 0, b"m", delivery_tag=b"t" * 33), id="long tag"),
    ],
)
def test_row_49_first_transfer_without_id_or_tag_detaches(octets: bytes) -> None:
    link, script = receiving()
    script << octets
    script >> INVALID
    script.expect_event(LinkDetached, link=link)
    assert not link.queue
    assert link.session.state is SessionState.MAPPED


def test_row_49_tag_of_32_octets_is_taken() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", delivery_tag=b"t" * 32) + transfer(0, 1, b"m", delivery_tag=b"")
    assert [len(d.tag) for d in link.queue] == [32, 0]


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("general", [True, False])
def test_row_49_tag_of_an_unsettled_delivery_detaches(settled: bool, general: bool) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", delivery_tag=b"t")
    script << transfer(0, 1, b"m", delivery_tag=b"t", settled=settled, pad=general)
    script >> INVALID
    assert [d.delivery_id for d in link.queue] == [0]


def test_row_49_tag_may_be_used_again_when_its_delivery_is_settled() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", delivery_tag=b"t")
    link.queue[0].accept()
    script << transfer(0, 1, b"m", delivery_tag=b"t")
    script >> expected("disposition", first=0)
    script << disposition(False, 1) << transfer(0, 2, b"m", delivery_tag=b"t", aborted=True)
    script << transfer(0, 3, b"m", delivery_tag=b"t", settled=True)
    script << transfer(0, 4, b"m", delivery_tag=b"t", more=True) << transfer(0, settled=True)
    script << transfer(0, 5, b"m", delivery_tag=b"t")
    script.expect_nothing()
    assert [d.delivery_id for d in link.queue] == [0, 1, 3, 4, 5]
    assert set(link.tags) == {b"t"}


def test_row_49_tag_is_free_for_every_other_link() -> None:
    one, other, script = two_links()
    script << transfer(0, 0, b"m", delivery_tag=b"t") + transfer(1, 1, b"m", delivery_tag=b"t")
    assert len(one.queue) == len(other.queue) == 1


@pytest.mark.parametrize(
    "fields",
    [{"delivery_id": 1}, {"delivery_tag": b"other"}, {"message_format": 3}],
    ids=["id", "tag", "format"],
)
def test_row_49_continuation_under_another_name_detaches(fields: dict[str, Any]) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", more=True)
    script << frame("transfer", handle=0, payload=b"m", **fields)
    script >> INVALID
    assert link.session.connection.partial_octets == 0
    assert not link.queue


def test_row_49_continuation_may_repeat_its_name() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"a", more=True, message_format=0, settled=False)
    script << transfer(0, 0, b"b", more=True, message_format=0, settled=False)
    script << transfer(0, None, b"c", settled=False)
    assert [d.payload for d in link.queue] == [b"abc"]


@pytest.mark.parametrize("payload", [b"m", b""])
def test_row_49_settled_that_is_taken_back_detaches(payload: bytes) -> None:
    _link, script = receiving()
    script << transfer(0, 0, payload, more=True, settled=True) << transfer(0, None, b"m", settled=False)
    script >> INVALID


def test_row_49_settled_on_any_transfer_settles() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"a", more=True, settled=False)
    assert len(link.session.settlement.incoming) == 1
    script << transfer(0, None, b"b", more=True, settled=True) << transfer(0, None, b"c")
    assert [(d.payload, d.settled) for d in link.queue] == [(b"abc", True)]
    assert not link.session.settlement.incoming


def test_row_49_delivery_id_out_of_order_ends_the_session() -> None:
    link, script = receiving()
    script << transfer(0, 5, b"m") + transfer(0, 7, b"m")
    script >> expected("end", error=error("amqp:invalid-field"))
    script.expect_event(SessionEnded, session=link.session)
    assert link.state is LinkState.GONE


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(transfer(0, 1, b"m", delivery_tag=None), id="no tag"),
        pytest.param(transfer(0, 1, b"m", delivery_tag=b"\0\0\0\0"), id="tag in use"),
        pytest.param(transfer(0, 1, b"m", rcv_settle_mode=1), id="illegal mode"),
        pytest.param(transfer(0, 1, b"a", more=True) + transfer(0, 2, b"m"), id="interleaved"),
        pytest.param(b"".join(transfer(0, n, b"m") for n in range(1, 30)), id="without credit"),
    ],
)
def test_row_43_deliveries_of_a_link_that_failed_leave_the_others_in_order(broken: bytes) -> None:
    one, other, script = two_links()
    script << transfer(0, 0, b"m") + broken
    assert one.state is LinkState.DETACH_SENT
    following = one.session.next_incoming_delivery_id
    assert following is not None
    script << transfer(0, following, b"late", more=True) << transfer(0, following, b"late")
    script << transfer(0, None, b"late") << transfer(1, following + 1, b"good")
    assert [d.payload for d in other.queue] == [b"good"]
    assert one.session.state is SessionState.MAPPED


def test_row_43_delivery_in_progress_is_dropped_when_we_detach() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m" * 1000, more=True)
    link.detach()
    assert link.session.connection.partial_octets == 0
    script << transfer(0, None, b"m" * 1000, more=True) << transfer(0, None, b"m")
    script >> expected("detach")
    script.expect_nothing()
    assert not link.queue


@pytest.mark.parametrize("first", [0, None])
def test_row_43_delivery_dropped_first_of_all_counts_for_nothing(first: int | None) -> None:
    one, other, script = two_links()
    one.detach()
    script << transfer(0, first, b"m") << transfer(1, 4, b"good")
    assert [d.payload for d in other.queue] == [b"good"]


def test_transfer_that_asks_for_settle_mode_second_detaches_when_the_link_settles_first() -> None:
    _link, script = receiving()
    script << transfer(0, 0, b"m", rcv_settle_mode=1)
    script >> INVALID


def test_transfer_that_is_settled_may_say_any_settle_mode() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", rcv_settle_mode=1, settled=True)
    assert len(link.queue) == 1
    assert not link.session.settlement.modes


# -- row 46, 64: credit -------------------------------------------------------------------------


def test_row_46_transfer_before_our_attach_has_no_credit() -> None:
    _session, script = begun()
    script << attach("x", 0, role=False) + transfer(0, 0, b"m")
    script >> expected("attach", name="x")
    script >> expected("detach", error=error("amqp:link:transfer-limit-exceeded"))
    script.expect_event(LinkAttached)
    script.expect_event(LinkDetached)


# -- row 47, 48, 50: sizes ----------------------------------------------------------------------


@pytest.mark.parametrize("pad", [True, False])
def test_row_47_message_in_one_frame_over_the_maximum_detaches(pad: bool) -> None:
    link, script = receiving(Limits(max_message_size=10))
    script << transfer(0, 0, b"m" * 10, pad=pad)
    script.expect_nothing()
    script << transfer(0, 1, b"m" * 11, pad=pad)
    script >> expected("detach", handle=0, closed=True, error=error("amqp:link:message-size-exceeded"))
    assert len(link.queue) == 1
    assert link.session.connection.partial_octets == 0


def test_row_47_message_in_parts_detaches_at_the_first_octet_over() -> None:
    link, script = receiving(Limits(max_message_size=10))
    script << transfer(0, 0, b"m" * 5, more=True) << transfer(0, None, b"m" * 5, more=True)
    script.expect_nothing()
    script << transfer(0, None, b"m", more=True)
    script >> expected("detach", error=error("amqp:link:message-size-exceeded"))
    assert link.session.connection.partial_octets == 0


def test_row_47_message_of_any_size_is_taken_when_there_is_no_limit() -> None:
    link, script = receiving(Limits(max_message_size=None))
    script << transfer(0, 0, b"m" * 60_000, more=True) << transfer(0, None, b"m" * 60_000)
    script << transfer(0, 1, b"whole")
    assert [len(d.payload) for d in link.queue] == [120_000, 5]


def test_row_48_largest_delivery_in_progress_goes_when_the_budget_is_full() -> None:
    one, other, script = two_links(Limits(partial_octets=100))
    script << transfer(0, 0, b"a" * 60, more=True) + transfer(1, 1, b"b" * 30, more=True)
    script.expect_nothing()
    script << transfer(1, None, b"b" * 20, more=True)
    script >> expected("detach", handle=0, closed=True, error=error("amqp:resource-limit-exceeded"))
    script << transfer(1, None, b"b")
    script << transfer(1, 2, b"next")
    assert [d.payload for d in other.queue] == [b"b" * 51, b"next"]
    assert one.session.connection.partial_octets == 0


def test_row_48_delivery_that_fills_the_budget_with_its_last_transfer_is_handed_out_when_another_goes() -> (
    None
):
    _one, other, script = two_links(Limits(partial_octets=100))
    script << transfer(0, 0, b"a" * 60, more=True) + transfer(1, 1, b"b" * 30, more=True)
    script << transfer(1, None, b"b" * 20)
    script >> expected("detach", handle=0, error=error("amqp:resource-limit-exceeded"))
    script << transfer(1, 2, b"next")
    assert [d.payload for d in other.queue] == [b"b" * 50, b"next"]
    script.expect_nothing()


def test_row_48_delivery_that_is_the_largest_itself_goes() -> None:
    _one, other, script = two_links(Limits(partial_octets=100))
    script << transfer(0, 0, b"a" * 20, more=True) + transfer(1, 1, b"b" * 60, more=True)
    script << transfer(1, None, b"b" * 30)
    script >> expected("detach", handle=1, error=error("amqp:resource-limit-exceeded"))
    assert not other.queue
    assert other.session.connection.partial_octets == 20


def test_row_48_there_is_no_budget_when_the_limit_is_none() -> None:
    link, script = receiving(Limits(partial_octets=None, max_message_size=None))
    for n in range(20):
        script << transfer(0, 0, b"m" * 60_000, more=n < 19)
    assert len(link.queue[0].payload) == 1_200_000


def test_row_50_stream_of_empty_transfers_closes_the_connection() -> None:
    _link, script = receiving(Limits(empty_transfers=8))
    script << transfer(0, 0, b"", more=True) + transfer(0, None, b"", more=True) * 7
    script.expect_nothing()
    fault = refused(script, transfer(0, None, b"", more=True))
    assert fault.condition == Condition.RESOURCE_LIMIT_EXCEEDED.value
    script >> expected("close", error=error("amqp:resource-limit-exceeded"))


def test_row_50_empty_transfers_consume_window_and_are_unbounded_when_the_limit_is_none() -> None:
    link, script = receiving(Limits(empty_transfers=None, incoming_window=4096))
    script << transfer(0, 0, b"", more=True) + transfer(0, None, b"", more=True) * 1500
    assert link.session.windows.incoming_window == 4096 - 1501
    script << transfer(0, None, b"end")
    assert [d.payload for d in link.queue] == [b"end"]


# -- row 51, 56: aborted, resumed ---------------------------------------------------------------


@pytest.mark.parametrize("parts", range(4))
def test_row_51_aborted_delivery_is_dropped_and_settled_without_a_word(parts: int) -> None:
    link, script = receiving()
    link.owner = owner = Owner()
    if parts:
        script << transfer(0, 0, b"m", more=True) + transfer(0, None, b"m", more=True) * (parts - 1)
        script << transfer(0, None, b"", aborted=True)
    else:
        script << transfer(0, 0, b"m", aborted=True)
    assert owner in script.touched  # its credit is used up
    assert (link.credit, link.delivery_count) == (9, 1)
    assert link.session.connection.partial_octets == 0
    assert not link.session.settlement.incoming
    assert not link.tags
    script << transfer(0, 1, b"next", delivery_tag=b"\0\0\0\0")
    assert [d.payload for d in link.queue] == [b"next"]
    script.expect_nothing()


def test_row_51_aborted_delivery_may_say_that_more_would_follow() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", more=True) << transfer(0, None, b"", aborted=True, more=True)
    script << transfer(0, 1, b"next")
    assert [d.payload for d in link.queue] == [b"next"]


@pytest.mark.parametrize("parts", range(1, 4))
@pytest.mark.parametrize("aborted", [True, None])
def test_row_56_resumed_delivery_that_we_do_not_know_is_ignored(parts: int, aborted: bool | None) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", resume=True, more=parts > 1, state=RECEIVED)
    for n in range(1, parts):
        script << transfer(0, None, b"m", resume=None, more=n + 1 < parts, aborted=aborted)
        if aborted:
            break
    script << transfer(0, 1, b"new")
    assert [d.payload for d in link.queue] == [b"new"]
    assert list(link.session.settlement.incoming) == [1]
    assert (link.credit, link.session.connection.partial_octets) == (8, 0)
    script.expect_nothing()


# -- deliveries cut at any place, on links that interleave ----------------------------------------


@given(data=st.data(), count=st.integers(1, 6), links=st.integers(1, 4))
def test_deliveries_come_whole_however_they_are_cut_and_interleaved(
    data: st.DataObject, count: int, links: int
) -> None:
    session, script = begun()
    receivers = [session.receiver(str(n)) for n in range(links)]
    for handle, link in enumerate(receivers):
        attached(script, session, link, handle, credit=100)
    wanted: list[list[bytes]] = [[] for _ in range(links)]
    lines: list[list[tuple[bytes, bool, bool | None]]] = []
    for handle in range(links):
        line: list[tuple[bytes, bool, bool | None]] = []
        for number in range(count):
            payload = bytes([handle, number]) * data.draw(st.integers(0, 6))
            cuts = sorted(data.draw(st.lists(st.integers(0, len(payload)), max_size=4)))
            aborted = data.draw(st.booleans()) and bool(cuts)
            parts = [payload[a:b] for a, b in pairwise([0, *cuts, len(payload)])]
            for n, part in enumerate(parts):
                line.append((part, n == 0, n == len(parts) - 1))
            if aborted:
                line[-1] = (b"", False, None)
            else:
                wanted[handle].append(payload)
        lines.append(line)
    next_id = 0
    ids = [0] * links
    while any(lines):
        handle = data.draw(st.sampled_from([n for n in range(links) if lines[n]]))
        part, first, last = lines[handle].pop(0)
        if first:
            ids[handle], next_id = next_id, next_id + 1
        repeat = first or data.draw(st.booleans())
        script << transfer(
            handle, ids[handle] if repeat else None, part, more=last is False, aborted=last is None or None
        )
    assert [[d.payload for d in link.queue] for link in receivers] == wanted
    assert session.connection.partial_octets == 0
    script.expect_nothing()


@pytest.mark.parametrize("frame_size", [512, 513, 600, 1000, 1024, 4096, 65_536])
def test_messages_cross_two_engines_whole_at_every_frame_size(frame_size: int) -> None:
    pair = Pair(Connection("a"), Connection("b", limits=Limits(max_frame_size=frame_size))).open()
    session = pair.a.session()
    session.begin()
    one, first = _link(pair, session, "one")
    two, second = _link(pair, session, "two")
    near = frame_size - 64
    sizes = [0, 1, 100, *range(near, near + 80), 2 * near, 10 * frame_size]
    for size in sizes:
        one.send(bytes([1]) * size)
        two.send(bytes([2]) * (size // 2), tag=b"t" * 32 if size == 1 else None)
        pair.run()
    assert [len(d.payload) for d in first.queue] == sizes
    assert [len(d.payload) for d in second.queue] == [size // 2 for size in sizes]
    assert {bytes(set(d.payload)) for d in first.queue} <= {b"", b"\1"}
    assert one.credit == two.credit == 1000 - len(sizes)


@given(st.integers(512, 700), st.lists(st.integers(0, 3000), min_size=1, max_size=5), st.integers(1, 9))
def test_messages_cross_whole_when_frames_and_windows_are_small(
    frame_size: int, sizes: list[int], window: int
) -> None:
    limits = Limits(max_frame_size=frame_size, incoming_window=window)
    pair = Pair(Connection("a"), Connection("b", limits=limits)).open()
    session = pair.a.session()
    session.begin()
    links = [_link(pair, session, name) for name in ("one", "two")]
    for size in sizes:
        for sender, _ in links:
            if sender.send(bytes(size)) is None:  # the other has the window: when it is done
                pair.run()
                assert sender.send(bytes(size)) is not None
        pair.run()
    for _, receiver in links:
        assert [len(d.payload) for d in receiver.queue] == sizes


def _link(pair: Pair, session: Session, name: str) -> tuple[SenderLink, ReceiverLink]:
    sender = session.sender(name)
    sender.attach()
    pair.run()
    answers = [e.link for e in pair.events[pair.b] if isinstance(e, LinkAttached) and e.link.name == name]
    assert isinstance(answers[0], ReceiverLink)
    answers[0].set_credit(1000)
    pair.run()
    return sender, answers[0]


# -- what is dropped because we have detached -----------------------------------------------------


def states_dropped(link: ReceiverLink) -> list[Any]:
    dropped: list[Any] = []
    link.context.on_dropped = dropped.append
    return dropped


IN_TXN = ("transactional-state", {"txn_id": b"t"})


def test_state_of_a_delivery_is_reported_that_comes_on_a_link_that_we_have_detached() -> None:
    link, script = receiving()
    dropped = states_dropped(link)
    link.detach()
    script << transfer(0, 0, b"x", delivery_tag=b"t", state=IN_TXN)
    script << transfer(0, 1, b"x", delivery_tag=b"u")
    assert [each.txn_id for each in dropped] == [b"t"]


def test_state_of_a_delivery_is_reported_that_has_begun_and_is_too_large() -> None:
    link, script = receiving(Limits(max_message_size=10))
    dropped = states_dropped(link)
    script << transfer(0, 0, b"x", delivery_tag=b"t", more=True, state=IN_TXN)
    assert not dropped
    script << transfer(0, 0, bytes(20), delivery_tag=b"t")
    assert link.state is LinkState.DETACH_SENT
    assert [each.txn_id for each in dropped] == [b"t"]


def test_state_of_a_delivery_is_dropped_in_silence_if_nobody_wants_it_or_the_peer_detaches() -> None:
    link, script = receiving()
    link.detach()
    script << transfer(0, 0, b"x", delivery_tag=b"t", state=IN_TXN)
    link, script = receiving()
    dropped = states_dropped(link)
    script << transfer(0, 0, b"x", delivery_tag=b"t", more=True, state=IN_TXN)
    script << frame("detach", handle=0, closed=True)
    assert link.incoming is None
    assert not dropped
