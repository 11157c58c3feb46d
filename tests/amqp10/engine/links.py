"""Frames about links as a scripted peer writes them, and more than one link on a session."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.naive.performatives import frame, sections
from tests.naive.script import Script, filled
from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.session import Session
from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus, Sent
from trio_amqp10.amqp10.spec.messaging import Source, Target

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.link import Link
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.session_core import SessionCore

ACCEPTED: tuple[str, dict[str, Any]] = ("accepted", {})


class Owner:
    """Counts how often it was woken; ``script.collect`` lists it where the engine touched it."""

    def __init__(self) -> None:
        self.touched = False
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1


def attach(name: str, handle: int, *, role: bool, **fields: Any) -> bytes:
    """The peer's attach; ``role`` is the peer's own."""
    usual: dict[str, Any] = {"name": name, "handle": handle, "role": role}
    usual |= {"source": ("source", {"address": "q"}), "target": ("target", {"address": "q"})}
    if not role:
        usual["initial_delivery_count"] = 0
    return filled("attach", usual, fields)


def session_of(link: Link) -> Session:
    """The session of ``link``, with all that a link does not see of it."""
    assert isinstance(link.session, Session)
    return link.session


def attached(
    script: Script, session: SessionCore, link: Link, handle: int, *, credit: int = 0, **fields: Any
) -> None:
    """Attach ``link`` of ours, answered on the peer's ``handle``; a receiver grants ``credit``."""
    link.attach(source=Source(address="q"), target=Target(address="q"))
    script.expect("attach", name=link.name)
    script << attach(link.name, handle, role=not link.role, **fields)
    script.expect_event(LinkAttached, link=link)
    if credit:
        link.set_credit(credit)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        script.expect("flow", link_credit=credit)


def transfer(handle: int, delivery_id: int | None = None, payload: bytes = b"", **fields: Any) -> bytes:
    """One transfer; a delivery-id brings a tag made of it, where the test gives none."""
    usual: dict[str, Any] = {"handle": handle}
    if delivery_id is not None:
        usual |= {"delivery_id": delivery_id, "delivery_tag": delivery_id.to_bytes(4, "big")}
    return frame("transfer", payload=payload, **{**usual, **fields})


def disposition(role: bool, first: int, last: int | None = None, **fields: Any) -> bytes:
    """The peer's word; settled and accepted, where the test does not say otherwise."""
    usual: dict[str, Any] = {"role": role, "first": first, "last": last, "settled": True, "state": ACCEPTED}
    return filled("disposition", usual, fields)


def snapshot(link: SenderLink) -> tuple[Any, ...]:
    """All that a send changes."""
    session = link.session
    return (
        link.credit,
        link.delivery_count,
        link.unsettled,
        link.in_progress,
        link._next_tag,
        session.next_delivery_id,
        session.windows.next_outgoing_id,
        session.windows.remote_incoming_window,
        dict(session.settlement.outgoing),
        dict(session.partials),
        session.connection.write_buffer.size,
    )


def error(condition: str) -> tuple[str, dict[str, Any]]:
    return ("error", {"condition": condition})


PAYLOAD = sections(("properties", {"subject": "s"}), ("data", b"0123456789"))


def remembered(link: SenderLink, *deliveries: tuple[bytes, Any], resend: bool = False) -> SenderTerminus:
    """A terminus that holds these tags, of messages that an older endpoint sent, in these states."""
    terminus = SenderTerminus(resend=resend)
    terminus.known = True
    for number, (tag, state) in enumerate(deliveries):
        delivery = OutgoingDelivery(link, number, tag, settled=False)
        delivery.state = state
        delivery.watcher = Owner()
        terminus.unsettled[tag] = Sent(delivery, PAYLOAD, 0)
    terminus.next_tag = len(deliveries)
    return terminus
