"""What a peer may have us do by resuming links with many unsettled deliveries, again and again (2.6.13)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from trio_amqp10.engine.delivery import ACCEPTED
from trio_amqp10.engine.events import LinkAttached, LinkDetached
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec.messaging import Source, Target
from trio_amqp10.spec.transport import ReceiverSettleMode

from .helpers import begun, flow, sending
from .links import attach, attached, session_of, transfer
from .steps import steps

if TYPE_CHECKING:
    from tests.naive.script import Script


def terminus_of(count: int) -> ReceiverTerminus:
    """Deliveries that were accepted before, and that the sender has not settled."""
    terminus = ReceiverTerminus()
    terminus.known = True
    for number in range(count):
        terminus.restore(number.to_bytes(4, "big"), ACCEPTED)
    return terminus


def resume(script: Script, terminus: ReceiverTerminus) -> dict[bytes, Any]:
    """The peer attaches, is told what is unsettled, and detaches; its map was too large for its frame."""
    script << attach("x", 0, role=False, unsettled={}, incomplete_unsettled=True)
    link = script.expect_event(LinkAttached).link
    link.terminus = terminus
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    said: dict[bytes, Any] = script.expect("attach", name="x")["unsettled"]
    script << frame("detach", handle=0)
    script.expect("detach")
    script.expect_event(LinkDetached)
    return said


def test_flood_of_attaches_that_resume_many_deliveries_is_ended() -> None:
    _session, script = begun(Limits(churn=20, churn_rate=1.0))
    terminus = terminus_of(4_000)
    for _ in range(11):
        resume(script, terminus)
    with pytest.raises(RemoteProtocolError, match="unsettled deliveries resumed at too high a rate"):
        resume(script, terminus)


def test_links_that_are_resumed_at_once_are_counted_together() -> None:
    session, script = begun(Limits(churn=10, churn_rate=1.0))
    terminus = {name: terminus_of(1_500) for name in "xy"}

    def resume_both() -> None:
        for handle, name in enumerate(terminus):
            script << attach(name, handle, role=False, unsettled={}, incomplete_unsettled=True)
            script.expect_event(LinkAttached).link.terminus = terminus[name]
        for link in [each for each in session.links if each.terminus in terminus.values()]:
            link.attach(
                source=Source(address="q"), target=Target(), rcv_settle_mode=ReceiverSettleMode.SECOND
            )
        script.collect().inbox.frames.clear()
        for handle in range(2):
            script << frame("detach", handle=handle)
            script.expect("detach")
            script.expect_event(LinkDetached)

    for _ in range(6):
        resume_both()
    with pytest.raises(RemoteProtocolError, match="unsettled deliveries resumed at too high a rate"):
        for _ in range(3):
            resume_both()


def test_attaches_that_resume_little_are_as_many_as_the_peer_likes() -> None:
    _session, script = begun(Limits(churn=4, churn_rate=1.0))
    for _ in range(50):
        resume(script, terminus_of(10))


def test_flood_of_deliveries_that_are_aborted_in_a_long_queue_is_ended() -> None:
    _session, script = begun(Limits(churn=20, churn_rate=1.0))
    terminus = terminus_of(4_000)
    for delivery in terminus.unsettled.values():
        delivery.state = None
        terminus.queue.append(delivery)
    script << attach("x", 0, role=False, unsettled=dict.fromkeys(terminus.unsettled))
    link = script.expect_event(LinkAttached).link
    link.terminus = terminus
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    script.expect("attach", name="x")

    def abort(number: int) -> None:
        tag = number.to_bytes(4, "big")
        script << transfer(0, number, delivery_tag=tag, resume=True, aborted=True)

    for number in range(100):
        abort(number)
    assert len(link.queue) == 3_900
    with pytest.raises(RemoteProtocolError, match="unsettled deliveries resumed at too high a rate"):
        for number in range(100, 400):
            abort(number)


def test_tag_as_long_as_those_that_are_made_costs_no_more_where_more_is_unsettled() -> None:
    counts = []
    for size in (10, 90):
        link, _script = sending(credit=3 * size)
        for _ in range(size):
            link.send(b"m")
        link.send(b"m", tag=b"\xff\0\0\0")
        counts.append(steps(lambda link=link: link.send(b"m", tag=b"\xff\0\0\1")))  # type: ignore[misc]
        link.send(b"m")
        for taken in (0, size - 1, size):
            with pytest.raises(LocalProtocolError, match="is that of an unsettled delivery"):
                link.send(b"m", tag=taken.to_bytes(4, "big"))
        assert link.send(b"m", tag=(size + 1).to_bytes(4, "big")) is not None
        made = link.send(b"m")
        assert made is not None
        assert made.tag == (size + 2).to_bytes(4, "big")
    assert counts[0] == counts[1]


def test_tag_that_another_link_of_the_session_has_is_free() -> None:
    link, script = sending()
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=10)
    assert other.send(b"m") is not None
    assert link.send(b"m", tag=bytes(4)) is not None
