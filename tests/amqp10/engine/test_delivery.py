"""What a delivery does when its receiver gives it an outcome."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.delivery import ACCEPTED, RELEASED
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected, Released
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import receiving
from .links import transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink


def receive(count: int, start: int = 0) -> tuple[ReceiverLink, Any, list[IncomingDelivery]]:
    """So many unsettled deliveries, and the script that sent them."""
    link, script = receiving(credit=count)
    script << b"".join(transfer(0, (start + n) & MASK, b"m") for n in range(count))
    return link, script, list(link.queue)


def test_delivery_outcomes_go_out_as_the_standard_names_them() -> None:
    _link, script, (one, two, three, four) = receive(4)
    one.reject()
    two.reject("amqp:not-found", "no such thing")
    three.modify(delivery_failed=True, undeliverable_here=True, annotations={"x-why": "because"})
    four.modify()
    script >> expected(
        "disposition", first=0, state=("rejected", {"error": ("error", {"condition": "amqp:internal-error"})})
    )
    script >> expected(
        "disposition",
        first=1,
        state=(
            "rejected",
            {"error": ("error", {"description": "no such thing", "condition": "amqp:not-found"})},
        ),
    )
    got = script.expect("disposition", first=2)
    assert got["state"] == (
        "modified",
        {"delivery_failed": True, "undeliverable_here": True, "message_annotations": {"x-why": "because"}},
    )
    script >> expected("disposition", first=3, state=("modified", {}))
    assert isinstance(one.state, Rejected)
    assert isinstance(three.state, Modified)
    assert not isinstance(three.state, Released)


def test_outcome_that_is_not_to_settle_leaves_the_delivery_to_be_settled_later() -> None:
    link, script, (one, two) = receive(2)
    settlement = link.session.settlement
    state = TransactionalState(txn_id=b"t", outcome=Accepted())
    settlement.dispose(one, state, settle=False)
    script >> expected("disposition", first=0, settled=None)
    assert (one.settled, one.state) == (False, state)
    settlement.settle_incoming(one, ACCEPTED)
    script >> expected("disposition", role=True, first=0, settled=True, state=("accepted", {}))
    assert (one.settled, one.state, set(link.tags)) == (True, ACCEPTED, {two.tag})
    settlement.settle_incoming(one, RELEASED)
    script.expect_nothing()
    link.detach()
    script << frame("detach", handle=0, closed=True)
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        settlement.settle_incoming(two, ACCEPTED)


@pytest.mark.parametrize("second", [False, True])
def test_accepting_does_what_the_outcome_accepted_does(second: bool) -> None:
    written: list[bytes] = []
    for accepts in (True, False):
        link, script, [first, *others] = receive(3)
        link.rcv_settle_mode = ReceiverSettleMode(second)
        script.collect()
        settlement = link.session.settlement
        for delivery in (others[1], first, others[0]):
            if accepts:
                settlement.accept(delivery)
            else:
                settlement.dispose(delivery, ACCEPTED)
            with pytest.raises(LocalProtocolError):
                settlement.accept(delivery)
        assert len(settlement.incoming) == len(link.tags) == 3 * second
        assert all(each.settled is not second and each.state is ACCEPTED for each in (first, *others))
        written.append(script.engine.data_to_send())
    assert written[0] == written[1]
