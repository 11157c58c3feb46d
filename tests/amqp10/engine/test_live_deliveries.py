"""Deliveries of detached links (2.6.4, 2.7.6).

They are live, and dispositions apply to them, unless the link was closed or detached with an error.
"""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.delivery import ACCEPTED as ACCEPT
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Source, Target
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode, SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import begun, error, flow
from .links import ACCEPTED, Owner, attach, disposition, session_of, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery, OutgoingDelivery
    from trio_amqp10.amqp10.engine.link import Link
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink

kept = pytest.mark.parametrize("kept", [True, False], ids=["kept", "not kept"])


def we_first(link: Link, script: Script, **fields: Any) -> None:
    link.detach(closed=bool(fields.get("closed")))
    script.expect("detach")
    script << frame("detach", handle=0, **fields)


def peer_first(_link: Link, script: Script, **fields: Any) -> None:
    script << frame("detach", handle=0, **fields)
    script.expect("detach")


who_detaches = pytest.mark.parametrize("detach", [we_first, peer_first])


def sent(*, kept: bool, second: bool = False) -> tuple[SenderLink, Script, OutgoingDelivery]:
    """Return our sender, which has sent one delivery."""
    session, script = begun()
    link = session.sender("x")
    if kept:
        link.terminus = SenderTerminus()
    link.attach(source=Source(), target=Target(address="q"), snd_settle_mode=SenderSettleMode.UNSETTLED)
    script << attach("x", 0, role=True, rcv_settle_mode=int(second))
    script << flow(handle=0, delivery_count=0, link_credit=10)
    delivery = link.send(b"one")
    assert delivery is not None
    script.collect().inbox.frames.clear()
    return link, script, delivery


def received(
    *transfers: bytes, kept: bool, mode: ReceiverSettleMode = ReceiverSettleMode.SECOND
) -> tuple[ReceiverLink, Script, IncomingDelivery]:
    """Return our receiver, which has received a delivery or the beginning of one."""
    session, script = begun()
    link = session.receiver("x")
    if kept:
        link.terminus = ReceiverTerminus()
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=mode)
    script << attach("x", 0, role=False)
    link.set_credit(10)
    script << b"".join(transfers or (transfer(0, 7, b"one"),))
    script.collect().inbox.frames.clear()
    [delivery] = session.settlement.incoming.values()
    return link, script, delivery


# -- dispositions of the peer ---------------------------------------------------------------------


@kept
@who_detaches
def test_outcome_counts_after_the_detach(detach: Any, kept: bool) -> None:
    link, script, delivery = sent(kept=kept)
    delivery.watcher = watcher = Owner()
    detach(link, script)
    assert link.state is LinkState.GONE
    assert watcher in script.touched  # a task that waits is woken, and finds why its link is gone
    assert not link.in_doubt
    script << disposition(True, 0)
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not link.unsettled
    assert not kept or not link.terminus.unsettled  # type: ignore[union-attr]


@kept
def test_outcome_after_the_detach_is_answered_when_the_receiver_settles_second(kept: bool) -> None:
    link, script, delivery = sent(kept=kept, second=True)
    peer_first(link, script)
    script << disposition(True, 0, settled=False)
    script >> expected("disposition", role=False, first=0, settled=True, state=ACCEPTED)
    assert delivery.settled


@kept
@who_detaches
@pytest.mark.parametrize("fields", [{"closed": True}, {"error": error("amqp:not-found")}])
def test_outcome_does_not_count_after_a_close_or_an_error(
    detach: Any, kept: bool, fields: dict[str, Any]
) -> None:
    link, script, delivery = sent(kept=kept)
    detach(link, script, **fields)
    script << disposition(True, 0)
    assert not delivery.settled
    assert delivery.state is None


@kept
@who_detaches
def test_settlement_of_the_sender_counts_after_the_detach(detach: Any, kept: bool) -> None:
    link, script, delivery = received(kept=kept)
    delivery.link.session.settlement.dispose(delivery, ACCEPT)
    script.expect("disposition", settled=None)
    delivery.watcher = watcher = Owner()
    detach(link, script)
    assert watcher in script.touched
    script << disposition(False, 7)
    assert delivery.settled
    assert not link.tags
    assert not kept or not link.terminus.unsettled  # type: ignore[union-attr]


# -- our dispositions -----------------------------------------------------------------------------


@kept
@pytest.mark.parametrize("mode", list(ReceiverSettleMode))
def test_outcome_is_sent_after_the_detach(kept: bool, mode: ReceiverSettleMode) -> None:
    link, script, delivery = received(kept=kept, mode=mode)
    peer_first(link, script)
    link.session.settlement.dispose(delivery, ACCEPT)
    first = mode == ReceiverSettleMode.FIRST
    script >> expected("disposition", role=True, first=7, settled=True if first else None, state=ACCEPTED)
    assert delivery.settled is first


@kept
def test_delivery_is_settled_by_its_sender_after_the_detach(kept: bool) -> None:
    link, script, delivery = sent(kept=kept)
    peer_first(link, script)
    delivery.settle()
    script >> expected("disposition", role=False, first=0, settled=True)
    assert not link.unsettled


def test_outcome_is_written_before_the_attach_that_resumes_the_link() -> None:
    link, script, delivery = received(kept=True, mode=ReceiverSettleMode.FIRST)
    peer_first(link, script)
    link.session.settlement.dispose(delivery, ACCEPT)
    again = session_of(link).receiver("x")
    again.terminus = link.terminus
    again.attach(source=Source(address="q"), target=Target())
    script >> expected("disposition", first=7, settled=True)
    script >> expected("attach", unsettled={})


# -- the end of live deliveries ---------------------------------------------------------------------


def test_old_id_of_a_sent_delivery_means_nothing_after_its_link_is_resumed() -> None:
    link, script, delivery = sent(kept=True)
    peer_first(link, script)
    again = session_of(link).sender("x")
    again.terminus = link.terminus
    again.attach(source=Source(), target=Target(address="q"))
    assert not link.unsettled
    script << disposition(True, 0)
    assert not delivery.settled
    assert delivery.state is None


def test_old_id_of_a_received_delivery_means_nothing_after_its_link_is_resumed() -> None:
    link, script, delivery = received(kept=True)
    peer_first(link, script)
    again = session_of(link).receiver("x")
    again.terminus = link.terminus
    again.attach(source=Source(address="q"), target=Target())
    assert not link.tags
    script << disposition(False, 7)
    assert not delivery.settled


@kept
def test_live_deliveries_are_over_when_their_session_ends(kept: bool) -> None:
    link, script, delivery = sent(kept=kept)
    peer_first(link, script)
    delivery.watcher = watcher = Owner()
    script << frame("end")
    assert watcher in script.touched
    assert link.in_doubt == (0 if kept else 1)
    assert not link.session.settlement.is_live(delivery)


def test_others_are_not_woken_when_a_link_is_detached() -> None:
    link, script, delivery = sent(kept=False)
    other = session_of(link).sender("y")
    other.attach(source=Source(), target=Target(address="q"))
    script << attach("y", 1, role=True)
    delivery.watcher = watcher = Owner()
    script.collect()
    script.touched.clear()
    script << frame("detach", handle=1)
    assert watcher not in script.touched


# -- incomplete deliveries ------------------------------------------------------------------------


def test_delivery_that_was_partly_sent_is_in_doubt_when_its_link_is_detached() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    script << attach("x", 0, role=True) << flow(handle=0, delivery_count=0, link_credit=10)
    partial = link.begin(b"one")
    assert partial is not None
    partial.delivery.watcher = watcher = Owner()
    link.detach(closed=False)
    assert watcher in script.collect().touched
    script << frame("detach", handle=0) << disposition(True, 0)
    assert not partial.delivery.settled
    assert (link.unsettled, link.in_doubt) == (0, 1)


def test_settled_delivery_that_was_partly_sent_leaves_nothing_when_its_link_is_detached() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    script << attach("x", 0, role=True) << flow(handle=0, delivery_count=0, link_credit=10)
    assert link.begin(b"one", settled=True) is not None
    link.detach(closed=False)
    assert (link.unsettled, link.in_doubt) == (0, 0)


def test_delivery_that_came_in_part_cannot_be_settled_when_its_link_is_detached() -> None:
    link, script, delivery = received(transfer(0, 7, b"one", more=True), kept=False)
    peer_first(link, script)
    assert not link.tags
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        link.session.settlement.dispose(delivery, ACCEPT)


def test_delivery_that_came_in_part_is_live_when_its_link_can_be_resumed() -> None:
    link, script, delivery = received(transfer(0, 7, b"one", more=True), kept=True)
    peer_first(link, script)
    script << disposition(False, 7)
    assert delivery.settled
    assert not link.terminus.unsettled  # type: ignore[union-attr]


def test_outcome_does_not_count_for_a_kept_link_when_we_have_detached_it_with_an_error() -> None:
    link, script, delivery = sent(kept=True)
    link.detach(closed=False, error=Error(condition="amqp:not-found"))
    script << disposition(True, 0)  # the peer has not read it yet
    assert not delivery.settled
    assert delivery.state is None
    assert not link.unsettled


# -- a link that is attached again, and not resumed -----------------------------------------------


def attached_again(link: Link, script: Script, **fields: Any) -> Any:
    """Attach as the peer on the same session; return our new link with the old terminus."""
    script << attach(link.name, 0, role=not link.role, **fields)
    session = session_of(link)
    [again] = [each for each in session.links if each.name == link.name]
    again.terminus = link.terminus
    again.attach(source=Source(), target=Target(address="q"))
    return again


@pytest.mark.parametrize("resend", [True, False])
def test_sent_delivery_goes_on_under_its_id_when_the_peer_attaches_again_without_a_map(resend: bool) -> None:
    link, script, delivery = sent(kept=True)
    terminus = link.terminus
    assert terminus is not None
    terminus.resend = resend
    peer_first(link, script)
    again = attached_again(link, script)
    script >> expected("attach", unsettled=None)
    script << flow(handle=0, delivery_count=1, link_credit=10, next_incoming_id=1)
    script.expect_nothing()  # it is neither sent again nor in doubt
    assert not terminus.in_doubt
    assert (link.unsettled, again.unsettled) == (0, 1)
    assert not again.incomplete
    script << disposition(True, 0)
    assert (delivery.settled, delivery.state) == (True, ACCEPT)
    assert again.unsettled == 0
    assert not again.terminus.unsettled


def test_sent_deliveries_are_counted_on_the_link_that_is_attached_again() -> None:
    link, script, _first = sent(kept=True)
    link.send(b"two")
    script.collect().inbox.frames.clear()
    peer_first(link, script)
    again = attached_again(link, script)
    script >> expected("attach", unsettled=None)
    assert (link.unsettled, again.unsettled) == (0, 2)
    script << disposition(True, 0, 1)
    assert again.unsettled == 0


def test_delivery_under_its_id_on_a_link_that_is_attached_again_holds_its_tag() -> None:
    link, script, delivery = received(kept=True, mode=ReceiverSettleMode.FIRST)
    peer_first(link, script)
    again = attached_again(link, script)
    script >> expected("attach", unsettled=None)
    assert again.tags == {delivery.tag: delivery}


def test_received_delivery_goes_on_under_its_id_when_the_peer_attaches_again_without_a_map() -> None:
    link, script, delivery = received(kept=True, mode=ReceiverSettleMode.FIRST)
    peer_first(link, script)
    again = attached_again(link, script)
    script >> expected("attach", unsettled=None)
    assert not delivery.settled
    assert not link.tags
    assert list(again.queue) == [delivery]
    delivery.accept()
    script >> expected("disposition", first=7, settled=True, state=ACCEPTED)
    assert not again.tags
    assert not again.terminus.unsettled


def test_link_is_resumed_when_the_peer_attaches_again_with_a_map() -> None:
    link, script, delivery = sent(kept=True)
    peer_first(link, script)
    again = attached_again(link, script, unsettled={b"\0\0\0\0": ACCEPTED})
    script >> expected("attach", unsettled={b"\0\0\0\0": None})
    script << flow(handle=0, delivery_count=0, link_credit=10, next_incoming_id=1)
    assert script.expect("transfer", resume=True)["settled"] is not None
    assert again.terminus is link.terminus
    assert delivery.state == ACCEPT


def test_delivery_that_was_partly_sent_is_resumed_when_the_peer_attaches_again_without_a_map() -> None:
    link, script, _first = sent(kept=True)
    script << flow(handle=0, delivery_count=1, link_credit=10, next_incoming_id=1, incoming_window=1)
    assert link.send(bytes(200_000)) is not None
    script.expect("transfer", more=True)
    peer_first(link, script)
    attached_again(link, script)
    tags = {b"\0\0\0\0": None, b"\0\0\0\1": None}
    script >> expected("attach", unsettled=tags)


def test_delivery_that_came_in_part_is_forgotten_when_the_peer_attaches_again_without_a_map() -> None:
    link, script, delivery = received(transfer(0, 7, b"on", more=True), kept=True)
    peer_first(link, script)
    attached_again(link, script)
    script >> expected("attach")
    assert delivery.settled


def test_deliveries_of_both_endpoints_are_dropped_apart_when_a_link_was_attached_again() -> None:
    link, script, moved = sent(kept=True)
    peer_first(link, script)
    again = attached_again(link, script)
    script << flow(handle=0, delivery_count=1, link_credit=10, next_incoming_id=1)
    new = again.send(b"two")
    settlement = link.session.settlement
    settlement.forget(link)
    assert settlement.is_live(moved)
    settlement.forget(again)
    assert not settlement.is_live(moved)
    assert not settlement.is_live(new)
