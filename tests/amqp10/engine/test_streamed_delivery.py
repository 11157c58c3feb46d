"""Deliveries handed out at their first transfer: what waits, what it closes, what ends it (2.5.6, 2.6.14)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Modified
from trio_amqp10.amqp10.spec.transactions import TransactionalState

from .helpers import begun
from .links import Owner, attached, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.streamed_delivery import StreamedDelivery

SMALL = Limits(max_frame_size=512, stream_octets=512 * 4, incoming_window=100)


def streaming(
    limits: Limits | None = None, *, max_message_size: int | None = None
) -> tuple[ReceiverLink, Script]:
    """A streaming receiver on the peer's handle 0, with credit."""
    session, script = begun(limits)
    link = session.receiver("x")
    link.stream()
    attached(script, session, link, 0)
    link.max_message_size = max_message_size
    link.set_credit(10)
    script.expect("flow", link_credit=10, incoming_window=session.windows.incoming_max)
    return link, script


def first(link: ReceiverLink) -> tuple[IncomingDelivery, StreamedDelivery]:
    delivery = link.queue.popleft()
    assert delivery.inflow is not None
    return delivery, delivery.inflow


def test_delivery_that_we_settled_goes_on_when_its_sender_has_not_settled() -> None:
    link, script = streaming()
    script << transfer(0, 0, b"one", more=True, settled=False)
    delivery, _inflow = first(link)
    delivery.reject()
    script >> expected("disposition", first=0, settled=True)
    script << transfer(0, None, b"two", settled=False)
    script.expect_nothing()
    assert link.error is None


def test_delivery_is_queued_at_its_first_transfer_and_grows() -> None:
    link, script = streaming()
    link.owner = owner = Owner()
    script << transfer(0, 0, b"one", more=True)
    assert owner in script.touched
    delivery, inflow = first(link)
    delivery.watcher = watcher = Owner()
    assert delivery.payload == b""
    assert (inflow.size, inflow.complete) == (3, False)
    assert inflow.take() == b"one"
    assert inflow.take() == b""
    script << transfer(0, None, b"two", more=True) << transfer(0, None, b"", more=True)
    assert watcher in script.touched
    assert link.session.connection.partial_octets == inflow.size == 3
    assert link.session.unread == 1
    script << transfer(0, None, b"three")
    assert inflow.complete
    assert inflow.take_all() == b"twothree"
    assert link.session.connection.partial_octets == link.session.unread == 0
    assert not link.inflows
    assert not link.queue
    delivery.accept()
    script >> expected("disposition", first=0, settled=True)


def test_delivery_in_one_transfer_is_whole_on_a_streaming_link() -> None:
    link, script = streaming()
    script << transfer(0, 0, b"fast") << transfer(0, 1, b"general", pad=True)
    assert [(d.payload, d.inflow) for d in link.queue] == [(b"fast", None), (b"general", None)]


def test_delivery_that_ends_with_an_empty_transfer_is_complete() -> None:
    link, script = streaming()
    script << transfer(0, 0, b"one", more=True)
    _, inflow = first(link)
    assert inflow.take() == b"one"
    assert link.inflows == {inflow: None}
    script << transfer(0, None, b"")
    assert inflow.complete
    assert not link.inflows


# -- the window -----------------------------------------------------------------------------------


def test_unread_transfers_close_the_window_and_reading_opens_it() -> None:
    link, script = streaming(SMALL)
    windows = link.session.windows
    assert windows.incoming_window == 4
    script << transfer(0, 0, b"0", more=True)
    for n in range(1, 4):
        script << transfer(0, None, b"%d" % n, more=True)
    script.expect_nothing()
    assert windows.incoming_window == 0
    _, inflow = first(link)
    assert inflow.take() == b"0"
    script.expect_nothing()
    assert inflow.take() == b"1"
    script >> expected("flow", handle=None, incoming_window=2)
    assert inflow.take() == b"2"
    script.expect_nothing()
    assert inflow.take() == b"3"
    script >> expected("flow", handle=None, incoming_window=4)
    script.expect_nothing()


def test_window_narrows_by_the_flow_that_gives_credit_and_what_is_in_flight_comes_in() -> None:
    session, script = begun(SMALL)
    plain = session.receiver("plain")
    attached(script, session, plain, 0, credit=90)
    link = session.receiver("x")
    link.stream()
    attached(script, session, link, 1)
    script << b"".join(transfer(0, n, b"sent before the flow was read") for n in range(90))
    assert len(plain.queue) == 90
    assert session.windows._in_flight == 10  # of the 96 that were announced beyond the 4 of now
    link.set_credit(1)
    script.collect()
    assert script.inbox.frames[-1]["incoming_window"] == 4
    script.inbox.frames.clear()
    assert link.state is LinkState.ATTACHED


def test_window_is_never_widened_by_narrowing() -> None:
    session, _ = begun(Limits(incoming_window=3))
    session.receiver("x").stream()
    assert (session.windows.incoming_max, session.windows.incoming_window) == (3, 3)


def test_window_heeds_the_budget_of_the_connection_too() -> None:
    limits = Limits(max_frame_size=512, stream_octets=5120, partial_octets=1536)
    link, script = streaming(limits)
    script << transfer(0, 0, bytes(400), more=True)
    assert link.session._window_room() == 2
    limits = Limits(partial_octets=None)
    free, _ = streaming(limits)
    free.session.unread = 1
    assert free.session._window_room() == limits.stream_octets // limits.max_frame_size - 1


# -- sizes ------------------------------------------------------------------------------------------


def test_row_47_stream_may_be_of_any_size_unless_a_limit_is_given() -> None:
    link, script = streaming(Limits(max_message_size=10))
    script << transfer(0, 0, bytes(100), more=True)
    assert link.max_message_size is None
    assert len(link.queue) == 1


def test_row_47_stream_over_the_limit_detaches_however_much_was_read() -> None:
    link, script = streaming(max_message_size=10)
    script << transfer(0, 0, bytes(8), more=True)
    _, inflow = first(link)
    inflow.take()
    script << transfer(0, None, bytes(3), more=True)
    script >> expected("detach", error=("error", {"condition": "amqp:link:message-size-exceeded"}))
    assert not inflow.complete
    script << transfer(0, 1, b"late")
    script.expect_nothing()


def test_row_47_message_in_one_frame_over_the_limit_of_a_stream_detaches() -> None:
    link, script = streaming(max_message_size=10)
    script << transfer(0, 0, bytes(11))
    script >> expected("detach", error=("error", {"condition": "amqp:link:message-size-exceeded"}))
    assert not link.queue


def test_row_48_stream_counts_with_what_was_not_read() -> None:
    limits = Limits(partial_octets=100)
    link, script = streaming(limits)
    script << transfer(0, 0, bytes(60), more=True)
    _, inflow = first(link)
    inflow.take()
    script << transfer(0, None, bytes(60), more=True)
    script.expect_nothing()
    script << transfer(0, None, bytes(60), more=True)
    script >> expected("detach", error=("error", {"condition": "amqp:resource-limit-exceeded"}))
    assert link.session.connection.partial_octets == link.session.unread == 0


# -- taken back, dropped, lost ----------------------------------------------------------------------


@pytest.mark.parametrize("fragments", range(4))
@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("settled", [False, True])
def test_row_51_aborted_delivery_is_discarded_at_any_fragment(
    fragments: int, taken: bool, settled: bool
) -> None:
    link, script = streaming()
    link.owner = owner = Owner()
    last: dict[str, Any] = {"aborted": True, "payload": b"to be ignored"}
    if fragments:
        script << transfer(0, 0, b"0", more=True, settled=settled)
        delivery, inflow = first(link)
        delivery.watcher = watcher = Owner()
        if not taken:
            link.queue.append(delivery)
        for n in range(1, fragments):
            script << transfer(0, None, b"%d" % n, more=True)
        script << frame("transfer", handle=0, **last)
        assert (inflow.aborted, inflow.complete, inflow.size) == (True, False, 0)
        assert watcher in script.touched
        assert delivery.settled
        delivery.accept()  # says nothing to anybody
    else:
        script << frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", **last)
    assert owner in script.touched
    assert not link.queue
    assert not link.inflows
    assert not link.tags
    assert not link.session.settlement.incoming
    assert link.session.connection.partial_octets == link.session.unread == 0
    script.expect_nothing()
    script << transfer(0, 1, b"next")
    assert [d.payload for d in link.queue] == [b"next"]


REFUSALS = [
    Modified(delivery_failed=True),
    TransactionalState(txn_id=b"t", outcome=Modified()),
]


@pytest.mark.parametrize("state", REFUSALS)
@pytest.mark.parametrize("settled", [True, False])
def test_refusal_discards_what_is_left(state: object, settled: bool) -> None:
    link, script = streaming()
    script << transfer(0, 0, b"one", more=True, settled=settled)
    delivery, inflow = first(link)
    link.session.settlement.dispose(delivery, state)
    assert inflow.discarded
    script << transfer(0, None, b"two", more=True)
    assert link.session.connection.partial_octets == link.session.unread == inflow.size == 0
    script << transfer(0, None, b"three")
    assert inflow.complete
    assert not link.inflows


@pytest.mark.parametrize("settled", [True, False])
def test_accept_leaves_the_rest_to_be_read(settled: bool) -> None:
    link, script = streaming()
    script << transfer(0, 0, b"one", more=True, settled=settled)
    delivery, inflow = first(link)
    delivery.accept()
    script << transfer(0, None, b"two")
    assert inflow.take() + inflow.take() == b"onetwo"


@pytest.mark.parametrize("queued", [False, True])
def test_link_that_goes_takes_what_is_not_complete(queued: bool) -> None:
    link, script = streaming()
    script << transfer(0, 0, b"whole", more=True) << transfer(0, None, b"ly")
    _, whole = first(link)
    script << transfer(0, 1, b"part", more=True)
    delivery, part = first(link)
    if queued:
        link.queue.append(delivery)
    delivery.watcher = watcher = Owner()
    script << frame("detach", handle=0, closed=True)
    assert watcher in script.touched
    assert not link.queue
    assert not link.inflows
    assert link.session.connection.partial_octets == link.session.unread == 0
    assert (part.size, part.complete, part.take()) == (0, False, b"")
    part.detach()
    assert whole.take() + whole.take() == b"wholely"
    whole.append(b"nobody is there")
    whole.discard()
    assert link.session.unread == 0


@pytest.mark.parametrize("fragments", range(1, 4))
def test_connection_that_is_lost_in_the_middle_leaves_nothing_held(fragments: int) -> None:
    link, script = streaming()
    script << transfer(0, 0, b"0", more=True)
    for n in range(1, fragments):
        script << transfer(0, None, b"%d" % n, more=True)
    _, inflow = first(link)
    connection = link.session.connection
    connection.transport_lost()
    assert connection.partial_octets == link.session.unread == inflow.size == 0
    assert not inflow.complete
