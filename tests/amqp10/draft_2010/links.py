"""Links of one engine of the draft whose peer is a script, and frames of that peer."""

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp10.draft_2010.spec import messaging
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import Source, Target, TransferState
from trio_amqp10.amqp10.message import Message

from .pairs import Script

PAYLOAD = Message(b"x").to_payload()
ACCEPTED = TransferState(outcome=messaging.Accepted())


def state(credit: int = 100, **fields: Any) -> draft.FlowState:
    return draft.FlowState(session_credit=credit, **fields)


def data(
    octets: bytes, *, first: bool = True, last: bool = True, offset: int = 0, code: int = 3
) -> draft.Fragment:
    return draft.Fragment(first=first, last=last, format_code=code, fragment_offset=offset, payload=octets)


def transfer(number: int, *fragments: draft.Fragment, **fields: Any) -> draft.Transfer:
    usual: dict[str, Any] = {
        "handle": 0,
        "flow_state": state(0, transfer_count=number + 1),
        "delivery_tag": b"t%d" % number,
        "transfer_id": number,
        "fragments": fragments,
    }
    return draft.Transfer(**{**usual, **fields})


def receiving(credit: int = 10, **options: Any) -> tuple[Script, Any]:
    script = Script(**options)
    link = script.attach(False)
    link.set_credit(credit)
    script.said()
    return script, link


def sending(session_credit: int = 100, link_credit: int | None = 10, **options: Any) -> tuple[Script, Any]:
    script = Script(**options)
    link = script.attach(True, flow_state=state(session_credit, link_credit=link_credit))
    script.said()
    return script, link


BOTH = draft.Linkage(source=Source(address="q", distribution_mode="move"), target=Target(address="q"))
