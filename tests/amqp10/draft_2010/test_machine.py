"""Two engines of the draft back to back, driven at random.

Messages are octets of a format of their own, so that they come out as they went in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings

from tests.amqp10.engine.test_machine import START, Machine
from trio_amqp10.amqp10.draft_2010 import session_credit as credit_module
from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.session_credit import SessionCredit
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.serial_numbers import distance

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.session import Session

LIMITS = Limits(max_frame_size=4_096, incoming_window=2, channel_max=5, churn=None)


class DraftMachine(Machine):
    """The machine of the final standard, with the credit of sessions for windows."""

    message_format = 7
    scale = 4

    def make(self, name: str) -> Any:
        return DraftConnection(name, limits=LIMITS, idle_timeout=None)

    def __init__(self) -> None:
        super().__init__()
        self.patches.append(patch.object(credit_module, "INITIAL_ID", START))
        self.patches[-1].start()

    def agree_on_windows(self, session: Session, peer: Session) -> None:
        ours, theirs = session.windows, peer.windows
        assert isinstance(ours, SessionCredit)
        assert isinstance(theirs, SessionCredit)
        assert not ours.partials
        lowest = theirs.lowest_incoming()
        room = ours.room(session.next_delivery_id)
        assert room <= LIMITS.incoming_window
        if lowest is not None and any(link.role for link in peer.links):
            most = LIMITS.incoming_window - distance(session.next_delivery_id, lowest)
            assert room <= most or not room


TestDraftMachine = DraftMachine.TestCase
TestDraftMachine.settings = settings(
    max_examples=60,
    phases=[Phase.generate],
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
