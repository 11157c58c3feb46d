"""A message is cut into the fragments and transfers that the peer takes (D 1116-1138)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import SectionCode, Source, Target, TransferState
from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.amqp10.message import Data, Message
from trio_amqp10.amqp10.spec import messaging as final

from .links import state
from .pairs import Script, attached_pair, linked, opened_pair, talk


def test_message_of_very_many_sections_is_one_transfer() -> None:
    one, two, sender, receiver = attached_pair()
    sender.send(Message(Data(*[b"x"] * 1_000)).to_payload())
    talk(one, two)
    assert len(Message.from_payload(receiver.queue.popleft().payload).sections) == 1_000


def test_octets_of_another_format_keep_it() -> None:
    one, two, sender, receiver = attached_pair()
    for size in (3, 100_000):
        sender.send(b"\x01" * size, message_format=9)
        talk(one, two)
        delivery = receiver.queue.popleft()
        assert delivery.message_format == 9
        assert delivery.payload == b"\x01" * size


def test_large_messages_of_two_links_do_not_disturb_each_other() -> None:
    one, two = opened_pair()
    session: Any = one.session()
    session.begin()
    pairs = [linked(one, two, name, session=session) for name in "ab"]
    for sender, _ in pairs:
        sender.send(Message(b"z" * 300_000).to_payload())
    talk(one, two)
    for _, receiver in pairs:
        assert len(receiver.queue.popleft().payload) == 300_000 + 8


def test_message_is_resumed_behind_what_the_peer_has() -> None:
    script = Script()
    terminus = SenderTerminus()
    link = script.session.sender("mine")
    link.terminus = terminus
    both: dict[str, Any] = {"source": final.Source(address="a"), "target": final.Target(address="b")}
    link.attach(**both)
    there = draft.Linkage(source=Source(address="a"), target=Target(address="b"))
    attach: dict[str, Any] = {"name": "mine", "handle": 0, "role": True, "local": there}
    script << draft.Attach(**attach, flow_state=state(link_credit=5))
    link.send(Message(b"0123456789").to_payload())
    link.detach(closed=False)
    *_, sent, detach = script.said()
    assert detach.local is not None
    script << draft.Detach(handle=0, local=there)
    again = script.session.sender("mine")
    again.terminus = terminus
    again.attach(**both)
    (resumed,) = script.said()
    assert resumed.unsettled == {sent.delivery_tag: None}
    known = {sent.delivery_tag: TransferState(bytes_transferred=4)}
    script << draft.Attach(
        **attach, flow_state=state(unsettled_lwm=1, transfer_count=1, link_credit=5), unsettled=known
    )
    (body,) = script.said()
    assert body.resume
    assert body.transfer_id == 1
    assert (body.flow_state.transfer_count, body.flow_state.link_credit) == (1, 5)
    (fragment, footer) = body.fragments
    assert (fragment.first, fragment.fragment_offset, fragment.payload) == (False, 4, b"456789")
    assert footer.format_code == SectionCode.FOOTER
