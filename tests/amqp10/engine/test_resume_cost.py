"""What a peer may have us do by resuming links with many unsettled deliveries, again and again (2.6.13)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from trio_amqp10.amqp10.engine.delivery import ACCEPTED
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode
from trio_amqp10.core.errors import RemoteProtocolError

from .helpers import begun
from .links import attach, transfer

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


@pytest.mark.parametrize(("churn", "times"), [(8, 5), pytest.param(20, 11, marks=pytest.mark.whole)])
def test_flood_of_attaches_that_resume_many_deliveries_is_ended(churn: int, times: int) -> None:
    _session, script = begun(Limits(churn=churn, churn_rate=1.0))
    terminus = terminus_of(4_000)
    for _ in range(times):
        resume(script, terminus)
    with pytest.raises(RemoteProtocolError, match="unsettled deliveries resumed at too high a rate"):
        resume(script, terminus)


@pytest.mark.whole
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
