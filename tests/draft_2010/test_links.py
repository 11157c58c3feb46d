"""Links of the draft: linkages, credit of link and session, dispositions (Book III, 6, 7.3 to 7.7)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from tests.draft_2010.pairs import Script, attached_pair, events_of, frames_in, linked, opened_pair, talk
from trio_amqp10.draft_2010.registries import TYPES, read
from trio_amqp10.draft_2010.spec import messaging, transactions
from trio_amqp10.draft_2010.spec import transport as draft
from trio_amqp10.draft_2010.spec.messaging import SectionCode, Source, Target, TransferState
from trio_amqp10.engine.events import LinkAttached, LinkDetached, SessionEnded
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.states import LinkState
from trio_amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.message import Data, Message, Value
from trio_amqp10.partial_pool import Pool
from trio_amqp10.spec import messaging as final
from trio_amqp10.spec import transport
from trio_amqp10.spec.transactions import Coordinator, Declare, Declared, Discharge, TransactionalState
from trio_amqp10.wire.values import Symbol, ULong

BOTH = draft.Linkage(source=Source(address="q", distribution_mode="move"), target=Target(address="q"))
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


# Linkages -------------------------------------------------------------------------------------------


def test_attach_is_answered_with_both_linkages() -> None:
    script = Script()
    script.attach(False)
    (attach,) = script.said()
    assert attach.role is True
    assert attach.local.source.address == attach.local.target.address == "q"
    assert attach.remote == draft.Linkage(source=Source(address="q"), target=Target(address="q"))
    assert attach.flow_state.session_credit == 2_048
    assert attach.flow_state.unsettled_lwm is None
    assert attach.flow_state.transfer_count == 0
    assert attach.flow_state.link_credit == 0


def test_sender_says_where_it_counts_from_and_knows_no_remote_linkage() -> None:
    script = Script()
    link = script.session.sender("mine")
    link.attach(source=final.Source(address="a"), target=final.Target(address="b"))
    (attach,) = script.said()
    assert attach.remote is None
    assert attach.flow_state.transfer_count == 0
    assert attach.flow_state.link_credit is None
    assert attach.flow_state.session_credit == 0


def test_link_is_refused_by_an_attach_without_linkage_and_a_detach() -> None:
    script = Script()
    script << draft.Attach(name="n", handle=4, role=False, local=BOTH, flow_state=state(transfer_count=0))
    (event,) = events_of(script.connection)
    event.link.refuse(transport.Error(condition="amqp:not-found"))
    attach, detach = script.said()
    assert attach.local is None
    assert detach.local is None
    assert detach.error.condition == "amqp:not-found"
    script << draft.Detach(handle=4)
    assert event.link.state is LinkState.GONE


def test_refusal_of_the_peer_is_read() -> None:
    script = Script()
    link = script.session.sender("mine")
    link.attach(source=final.Source(address="a"), target=final.Target(address="b"))
    script.said()
    script << draft.Attach(name="mine", handle=0, role=True, flow_state=state())
    assert link.remote.target is None
    script << draft.Detach(handle=0, error=draft.Error(condition=Symbol("amqp:not-found")))
    (answer,) = script.said()
    assert answer == draft.Detach(handle=link.handle)
    *_, event = events_of(script.connection)
    assert isinstance(event, LinkDetached)
    assert event.closed
    assert event.error is not None
    assert event.error.condition == "amqp:not-found"


@pytest.mark.parametrize("closed", [False, True])
def test_detach_of_ours_keeps_or_drops_the_local_linkage(closed: bool) -> None:
    script, link = receiving()
    link.detach(closed=closed)
    (detach,) = script.said()
    assert (detach.local is None) is closed
    assert detach.remote is not None
    script << draft.Detach(handle=0, local=None if closed else BOTH)
    assert link.state is LinkState.GONE
    assert script.session.windows.links == {}


def test_detach_of_the_peer_is_answered_and_a_close_by_both_null() -> None:
    script, link = receiving()
    script << draft.Detach(handle=0, local=BOTH, remote=BOTH)
    (answer,) = script.said()
    assert answer.local is not None
    assert answer.remote is not None
    assert not link.closed
    again = script.attach(False)
    script.said()
    script << draft.Detach(handle=0, remote=BOTH)
    assert script.said() == [draft.Detach(handle=again.handle)]
    assert again.closed


def test_detach_of_no_link_ends_the_session() -> None:
    script = Script()
    script << draft.Detach(handle=9)
    (end,) = script.said()
    assert end.error.condition == "amqp:session:unattached-handle"


def test_link_may_be_stolen() -> None:
    script, link = receiving()
    script << draft.Attach(name="link", handle=1, role=False, local=BOTH, flow_state=state(transfer_count=0))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:link:stolen"
    assert link.state is LinkState.DETACH_SENT
    events = events_of(script.connection)
    again = next(event.link for event in events if isinstance(event, LinkAttached))
    again.attach(source=final.Source(address="q"), target=final.Target(address="q"))
    script << draft.Detach(handle=0, local=BOTH)
    assert link.state is LinkState.GONE
    again.set_credit(3)
    *_, flow = script.said()
    assert flow.handle == again.handle
    script << transfer(0, data(b"x"), handle=1)
    assert len(again.queue) == 1


def test_attach_on_a_handle_in_use_ends_the_session() -> None:
    script, _ = receiving()
    script << draft.Attach(name="other", handle=0, role=False, local=BOTH, flow_state=state(transfer_count=0))
    assert script.said()[-1].error.condition == "amqp:session:handle-in-use"


@pytest.mark.parametrize("mode", ["detach", "end"])
def test_error_mode_end_ends_the_session_behind_the_link(mode: str) -> None:
    script = Script()
    link = script.attach(False, error_mode=Symbol(mode))
    script.said()
    link.detach(error=transport.Error(condition="amqp:internal-error"))
    said = script.said()
    assert isinstance(said[0], draft.Detach)
    assert [type(body) for body in said[1:]] == ([draft.End] if mode == "end" else [])
    if mode == "end":
        assert said[1].error.condition == "amqp:session:link-error"
        assert isinstance(events_of(script.connection)[-1], SessionEnded)


# Credit of the link ---------------------------------------------------------------------------------


def test_credit_comes_with_the_attach_and_with_a_flow() -> None:
    script, link = sending()
    assert link.credit == 10
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=3, drain=True), echo=True)
    assert link.credit == 3
    assert link.drain
    (echo,) = script.said()
    assert echo.flow_state.link_credit == 3
    link.drained()
    (flow,) = script.said()
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (3, 0)


def test_without_a_limit_credit_never_ends() -> None:
    script, link = sending(link_credit=None)
    for _ in range(3):
        assert link.send(PAYLOAD, settled=True) is not None
    assert link.credit > 2**31 - 10
    assert all(body.flow_state.link_credit is None for body in script.said())


def test_sender_counts_each_complete_message() -> None:
    script, link = sending()
    link.send(PAYLOAD)
    (body,) = script.said()
    assert (body.flow_state.transfer_count, body.flow_state.link_credit) == (1, 9)
    assert body.flow_state.unsettled_lwm == 0
    link.send(Message(b"x" * 400_000).to_payload())
    *parts, last = script.said()
    assert len(parts) >= 3
    assert {part.flow_state.transfer_count for part in parts} == {1}
    assert {part.flow_state.link_credit for part in parts} == {9}
    assert (last.flow_state.transfer_count, last.flow_state.link_credit) == (2, 8)
    assert all(part.more for part in parts)
    assert not last.more


def test_flow_of_a_sender_in_the_middle_of_a_message_counts_it_not_yet() -> None:
    script, link = sending()
    link.begin(b"")
    (opening,) = script.said()
    assert opening.more
    assert opening.fragments == ()
    link.available = 4
    link.write_flow(echo=True)
    (flow,) = script.said()
    assert flow.echo
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (0, 10)
    assert flow.flow_state.available == 4


def test_receiver_learns_of_what_waits_and_of_credit_that_was_given_up() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=4, available=7))
    assert link.available == 7
    assert link.delivery_count == 4
    assert link.credit == 6


def test_delivery_without_credit_detaches() -> None:
    script, link = receiving(credit=1)
    script << transfer(0, data(b"x")) << transfer(1, data(b"y"))
    *_, detach = script.said()
    assert detach.error.condition == "amqp:link:transfer-limit-exceeded"
    assert link.state is LinkState.DETACH_SENT
    script << transfer(2, data(b"z"))
    assert script.said() == []


def test_transaction_of_acquired_messages_is_an_option_of_the_flow() -> None:
    script, link = sending()
    flow = draft.Flow(
        handle=0, flow_state=state(transfer_count=0, link_credit=1), options={Symbol("txn-id"): b"t"}
    )
    script << flow
    assert link.txn_id == b"t"
    other, receiver = receiving()
    receiver.flow_properties = {Symbol("txn-id"): b"u"}
    receiver.set_credit(4)
    (said,) = other.said()
    assert said.options == {"txn-id": b"u"}


# Credit of the session ------------------------------------------------------------------------------


def test_session_credit_bounds_what_is_sent_until_the_lowest_moves_on() -> None:
    script, link = sending(session_credit=3)
    for _ in range(3):
        assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is None
    script << draft.Disposition(
        role=True, extents=(draft.Extent(first=0, last=1, settled=True, state=ACCEPTED),)
    )
    assert link.send(PAYLOAD) is None
    script << draft.Flow(handle=0, flow_state=state(3, unsettled_lwm=2, transfer_count=3, link_credit=10))
    assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is None
    lows = [body.flow_state.unsettled_lwm for body in script.said()]
    assert lows == [0, 0, 0, 2, 2]


def test_settled_transfers_use_the_credit_of_the_session_too() -> None:
    script, link = sending(session_credit=1)
    assert link.send(PAYLOAD, settled=True) is not None
    assert link.send(PAYLOAD, settled=True) is None
    assert script.said()[0].settled


def test_message_in_many_transfers_takes_one_of_the_credit() -> None:
    script, link = sending(session_credit=1)
    assert link.send(Message(b"x" * 500_000).to_payload()) is not None
    parts = script.said()
    assert len({part.transfer_id for part in parts}) == 1
    assert not parts[-1].more
    assert not link.in_progress
    assert link.send(PAYLOAD) is None


def test_transfer_beyond_the_credit_of_the_session_ends_it() -> None:
    script, link = receiving(credit=100, limits=Limits(incoming_window=2))
    script << transfer(0, data(b"a")) << transfer(1, data(b"b"))
    assert len(link.queue) == 2
    script << transfer(2, data(b"c"))
    (end,) = script.said()
    assert end.error.condition == "amqp:session:unsettled-limit-exceeded"
    assert "transfer 2" in end.error.description


def test_receiver_says_that_the_lowest_has_moved_on_once_half_is_used() -> None:
    script, link = receiving(credit=100, limits=Limits(incoming_window=4))
    script << transfer(0, data(b"a")) << transfer(1, data(b"b"))
    assert script.said() == []
    link.queue.popleft().accept()
    disposition, flow = script.said()
    assert isinstance(disposition, draft.Disposition)
    assert (flow.flow_state.unsettled_lwm, flow.flow_state.session_credit) == (1, 4)
    link.queue.popleft().accept()
    assert [type(body) for body in script.said()] == [draft.Disposition]
    script << transfer(2, data(b"c"))
    *_, flow = script.said()
    assert flow.flow_state.unsettled_lwm == 2


def test_settled_stream_goes_on_for_ever() -> None:
    one, two = opened_pair(limits=Limits(incoming_window=4))
    sender, receiver = linked(one, two, credit=1_000)
    for _ in range(100):
        assert sender.send(PAYLOAD, settled=True) is not None
        talk(one, two)
    assert len(receiver.queue) == 100


def test_consumer_that_holds_all_of_the_credit_stops_the_session() -> None:
    one, two = opened_pair(limits=Limits(incoming_window=4))
    sender, receiver = linked(one, two, credit=1_000)
    while sender.send(PAYLOAD):
        talk(one, two)
    assert len(receiver.queue) == 4
    receiver.queue.popleft().accept()
    talk(one, two)
    assert sender.send(PAYLOAD) is not None


def test_credit_of_a_session_without_receivers_is_told_to_nobody() -> None:
    script, _ = sending()
    script.session.owe_flow()
    assert script.said() == []
    link = script.attach(False, name="in", handle=1)
    link.set_credit(3)
    script.said()
    script.session.windows._credit = 2
    for number in range(2):
        script << transfer(number, data(b"x"), handle=1, settled=True)
    assert [body.handle for body in script.said()] == [link.handle]
    link.detach()
    script << transfer(2, data(b"x"), handle=1, settled=True)
    assert [type(body) for body in script.said()] == [draft.Detach]


# Fragments ------------------------------------------------------------------------------------------


def test_message_is_joined_of_its_fragments() -> None:
    script, link = receiving()
    text = draft.Fragment(first=True, last=True, format_code=0, fragment_offset=0, payload=b"")
    script << transfer(0, text, data(b"ab", last=False), more=True)
    assert len(link.queue) == 0
    assert script.connection.partial_octets == 2
    script << transfer(0, data(b"cd", first=False, last=False, offset=2), more=True)
    script << transfer(0, data(b"", first=False, offset=4), more=True)
    script << transfer(0, data(b"e", offset=4))
    message = Message.from_payload(link.queue.popleft().payload)
    assert [section.chunks for section in message.sections] == [(b"abcd",), (b"e",)]
    assert script.connection.partial_octets == 0


@pytest.mark.parametrize(
    "fragments",
    [
        [data(b"x", offset=5)],
        [data(b"x", first=False)],
        [data(b"x", last=False), data(b"y", offset=1)],
        [draft.Fragment(first=True, last=True, payload=b"x")],
        [data(b"x", last=False), data(b"y", first=False, offset=1, code=4)],
        [data(b"x", code=9)],
    ],
)
def test_fragments_that_do_not_follow_each_other_are_an_invalid_field(fragments: Any) -> None:
    script, _ = receiving()
    script << transfer(0, *fragments)
    *_, said = script.said()
    assert said.error.condition == "amqp:invalid-field"


def test_message_whose_last_section_has_no_end_detaches() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x", last=False))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:invalid-field"
    assert link.delivery_count == 1


def test_message_that_is_none_detaches_and_counts() -> None:
    script, link = receiving()
    other = script.attach(False, name="other", handle=1)
    other.set_credit(5)
    script.said()
    script << transfer(0, data(b"\xff", code=4))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:decode-error"
    script << transfer(1, data(b"x"), handle=1)
    assert len(other.queue) == 1
    assert link.state is LinkState.DETACH_SENT


@pytest.mark.parametrize("more", [False, True])
def test_message_that_is_too_large_detaches(more: bool) -> None:
    script, _ = receiving(limits=Limits(max_message_size=100))
    script << transfer(0, data(b"x" * 101, last=not more), more=more)
    (detach,) = script.said()
    assert detach.error.condition == "amqp:link:message-size-exceeded"


def test_message_of_very_many_sections_is_one_transfer() -> None:
    one, two, sender, receiver = attached_pair()
    sender.send(Message(Data(*[b"x"] * 1_000)).to_payload())
    talk(one, two)
    assert len(Message.from_payload(receiver.queue.popleft().payload).sections) == 1_000


@pytest.mark.parametrize("pooled", [False, True])
def test_messages_in_progress_are_bounded_and_the_largest_goes(pooled: bool) -> None:
    script, link = receiving(limits=Limits(partial_octets=None if pooled else 1_000))
    pool = Pool(1_000)
    if pooled:
        pool.join(script.connection.context)
    other = script.attach(False, name="other", handle=1)
    other.set_credit(5)
    script.said()
    script << transfer(0, data(b"x" * 800, last=False), more=True)
    script << transfer(1, data(b"x" * 100, last=False), more=True, handle=1)
    assert script.said() == []
    script << transfer(1, data(b"x" * 200, first=False, last=False, offset=100), more=True, handle=1)
    (detach,) = script.said()
    assert detach.handle == link.handle
    assert detach.error.condition == "amqp:resource-limit-exceeded"
    assert script.connection.partial_octets == 300
    script << draft.End()
    assert script.connection.partial_octets == pool.octets == 0


def test_largest_of_this_connection_goes_where_another_has_more_that_cannot() -> None:
    script, link = receiving(limits=Limits(partial_octets=None))
    other = Script().connection
    pool = Pool(1_000)
    pool.join(script.connection.context)
    pool.join(other.context)
    script << transfer(0, data(b"x" * 10, last=False), more=True)
    other.context.partial_octets = 2_000
    script << transfer(0, data(b"x", first=False, last=False, offset=10), more=True)
    assert link.state is LinkState.DETACH_SENT


def test_transfers_with_nothing_in_them_are_bounded() -> None:
    script, _ = receiving(limits=Limits(empty_transfers=5))
    for _ in range(7):
        script << transfer(0, more=True)
    assert script.faults


def test_fragments_with_nothing_in_them_are_bounded() -> None:
    script, _ = receiving(limits=Limits(empty_transfers=5))
    script << transfer(0, data(b"x"), *(7 * (data(b"", offset=1),)), more=True)
    assert script.faults


def test_transfer_under_another_id_in_the_middle_of_a_message_detaches() -> None:
    script, _ = receiving()
    script << transfer(0, data(b"x", last=False), more=True)
    script << transfer(1, data(b"x"))
    (detach,) = script.said()
    assert isinstance(detach, draft.Detach)


@pytest.mark.parametrize("begun", [False, True])
def test_aborted_message_is_dropped_and_counts(begun: bool) -> None:
    script, link = receiving()
    if begun:
        script << transfer(0, data(b"x", last=False), more=True)
    script << transfer(0, aborted=True)
    script << transfer(1, data(b"y"))
    assert Message.from_payload(link.queue.popleft().payload).body == b"y"
    assert not link.queue
    assert script.connection.partial_octets == 0


def test_abort_of_ours_is_said() -> None:
    script, link = sending()
    partial = link.begin(b"abc")
    partial.abort()
    opening, abort = script.said()
    assert opening.more
    assert abort.aborted
    assert abort.transfer_id == opening.transfer_id


def test_message_that_has_to_be_understood_is_rejected() -> None:
    script, link = receiving()
    header = messaging.Header(message_attrs={Symbol("a"): 2, Symbol("x-req-magic"): 1})
    from trio_amqp10.draft_2010.registries import write

    for number, settled in ((0, False), (1, True)):
        octets = write(header)
        script << transfer(
            number,
            draft.Fragment(first=True, last=True, format_code=0, fragment_offset=0, payload=octets),
            data(b"x", offset=len(octets)),
            settled=settled,
        )
    (disposition,) = script.said()
    (extent,) = disposition.extents
    assert extent.first == 0
    assert extent.settled
    assert "x-req-magic" in extent.state.outcome.error.description
    assert not link.queue


def test_octets_of_another_format_keep_it() -> None:
    one, two, sender, receiver = attached_pair()
    for size in (3, 100_000):
        sender.send(b"\x01" * size, message_format=9)
        talk(one, two)
        delivery = receiver.queue.popleft()
        assert delivery.message_format == 9
        assert delivery.payload == b"\x01" * size


def test_streamed_message_leaves_when_it_is_finished() -> None:
    one, two, sender, receiver = attached_pair()
    payload = Message(b"y" * 30_000).to_payload()
    partial = sender.begin(payload[:10])
    talk(one, two)
    partial.append(payload[10:])
    talk(one, two)
    assert receiver.incoming is not None
    partial.finish()
    talk(one, two)
    assert receiver.queue.popleft().payload == payload


def test_transfer_to_a_sender_or_to_no_link_is_the_engines_affair() -> None:
    script, _ = sending()
    script << transfer(0, data(b"x"))
    assert isinstance(script.said()[-1], draft.Detach)
    script << transfer(1, data(b"x"), handle=77)
    assert isinstance(script.said()[-1], draft.End)


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


# Dispositions ---------------------------------------------------------------------------------------


def test_ranges_of_one_pass_are_extents_of_one_frame() -> None:
    script, link = receiving(credit=100)
    for number in range(6):
        script << transfer(number, data(b"x"))
    deliveries = list(link.queue)
    for number in (0, 1, 3, 5):
        deliveries[number].accept()
    deliveries[2].release()
    (body,) = script.said()
    assert body.role is True
    assert [(each.first, each.last) for each in body.extents] == [(0, 1), (3, None), (5, None), (2, None)]
    assert all(each.settled for each in body.extents)


def test_very_many_ranges_are_several_frames() -> None:
    one, two, sender, receiver = attached_pair(credit=1_000, max_frame_size=4_096)
    sent = [sender.send(PAYLOAD) for _ in range(200)]
    talk(one, two)
    for delivery in list(receiver.queue)[::2]:
        delivery.modify(annotations={"x": "y" * 100})
    assert len([body for _, body in frames_in(two.data_to_send() or b"")]) > 3
    for delivery in list(receiver.queue)[1::2]:
        delivery.accept()
    talk(one, two)
    assert [each.settled for each in sent] == [False, True] * 100


def test_outcome_that_is_longer_in_the_draft_goes_without_its_attributes() -> None:
    one, two, sender, receiver = attached_pair(max_frame_size=4_096)
    sent = [sender.send(PAYLOAD) for _ in range(2)]
    talk(one, two)
    many = {Symbol(f"key{number:03}"): ULong(0) for number in range(300)}
    first, second = receiver.queue
    first.modify(delivery_failed=True, annotations=many)
    two.sessions[0].settlement.dispose(
        second, final.Rejected(error=transport.Error(condition=Symbol("x:y"), info=many))
    )
    talk(one, two)
    assert sent[0].state == final.Modified(delivery_failed=True)
    assert sent[1].state == final.Rejected(error=transport.Error(condition=Symbol("x:y")))


def test_extents_are_ranges_of_their_own() -> None:
    script, link = sending()
    deliveries = [link.send(PAYLOAD) for _ in range(4)]
    script.said()
    released = TransferState(outcome=messaging.Released())
    extents = (
        draft.Extent(first=0, last=1, settled=True, state=ACCEPTED),
        draft.Extent(first=3, settled=True, state=released),
    )
    script << draft.Disposition(role=True, extents=extents)
    assert [type(each.state) for each in deliveries] == [
        final.Accepted,
        final.Accepted,
        type(None),
        final.Released,
    ]


def test_extent_with_a_handle_is_about_that_link_alone() -> None:
    script, link = sending()
    other = script.attach(True, name="other", handle=1, flow_state=state(100, link_credit=10))
    deliveries = [each.send(PAYLOAD) for each in (link, other, other, link, other)]
    script << draft.Disposition(
        role=True, extents=(draft.Extent(first=0, last=3, handle=1, settled=True, state=ACCEPTED),)
    )
    assert [each.settled for each in deliveries] == [False, True, True, False, False]


def test_extent_of_the_senders_own_settles_what_came() -> None:
    script, link = receiving()
    for number in range(3):
        script << transfer(number, data(b"x"))
    script << draft.Disposition(role=False, extents=(draft.Extent(first=0, last=1, handle=0, settled=True),))
    assert [each.settled for each in link.queue] == [True, True, False]
    script << draft.Disposition(role=False, extents=(draft.Extent(first=2, settled=True),))
    assert all(each.settled for each in link.queue)


def test_extent_with_a_handle_that_says_nothing_changes_nothing() -> None:
    script, link = sending()
    delivery = link.send(PAYLOAD)
    script << draft.Disposition(role=True, extents=(draft.Extent(first=0, last=3, handle=0),))
    assert delivery.state is None
    assert not delivery.settled


def test_extent_that_ends_before_it_begins_ends_the_session() -> None:
    script, _ = sending()
    script << draft.Disposition(role=True, extents=(draft.Extent(first=3, last=2),))
    assert script.said()[-1].error.condition == "amqp:invalid-field"


# Resuming -------------------------------------------------------------------------------------------


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


# Transactions ---------------------------------------------------------------------------------------


def test_transaction_is_declared_and_discharged() -> None:
    one, two = opened_pair()
    sender, receiver = linked(one, two, target=Coordinator(), credit=10)
    declared = sender.send(Message(Value(Declare())).to_payload())
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.payload == Message(Value(Declare())).to_payload()
    two_session = receiver.session
    two_session.settlement.dispose(delivery, Declared(txn_id=b"t"))
    talk(one, two)
    assert declared.state == Declared(txn_id=b"t")
    assert one.sessions[0].windows.declares == set()
    discharged = sender.send(Message(Value(Discharge(txn_id=b"t", fail=True))).to_payload())
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.payload == Message(Value(Discharge(txn_id=b"t", fail=True))).to_payload()
    assert delivery.word is None
    delivery.accept()
    talk(one, two)
    assert discharged.state == final.Accepted()
    sender.send(Message("no command").to_payload())
    talk(one, two)
    assert Message.from_payload(receiver.queue.popleft().payload).body == "no command"


def test_discharge_names_its_transaction_in_the_state_of_the_transfer() -> None:
    script = Script()
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    link = script.session.sender("tx")
    link.attach(source=final.Source(), target=Coordinator())
    script << draft.Attach(name="tx", handle=0, role=True, local=there, flow_state=state(link_credit=5))
    script.said()
    link.send(Message(Value(Discharge(txn_id=b"t"))).to_payload())
    (body,) = script.said()
    assert body.state == TransferState(txn_id=b"t")
    command = next(each for each in body.fragments if each.format_code == SectionCode.AMQP_DATA)
    assert read(command.payload, TYPES) == transactions.Discharge()


def test_work_in_a_transaction_carries_it_both_ways() -> None:
    one, two, sender, receiver = attached_pair()
    working = TransactionalState(txn_id=b"t")
    sent = sender.send(PAYLOAD, state=working)
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.word == working
    outcome = TransactionalState(txn_id=b"t", outcome=final.Accepted())
    receiver.session.settlement.dispose(delivery, outcome)
    talk(one, two)
    assert sent.state == outcome


def test_discharge_of_no_transaction_detaches() -> None:
    script = Script()
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    link = script.attach(False, local=there)
    link.set_credit(1)
    script.said()
    from trio_amqp10.draft_2010.registries import write

    script << transfer(0, data(write(transactions.Discharge()), code=4))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:invalid-field"


def test_declare_refused_is_no_transaction() -> None:
    script = Script()
    link = script.session.sender("tx")
    link.attach(source=final.Source(), target=Coordinator())
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    script << draft.Attach(name="tx", handle=0, role=True, local=there, flow_state=state(link_credit=5))
    first, second = (link.send(Message(Value(Declare())).to_payload()) for _ in range(2))
    script.said()
    rejected = TransferState(outcome=messaging.Rejected())
    made = TransferState(outcome=messaging.Accepted(), txn_id=b"t")
    script << draft.Disposition(
        role=True,
        extents=(
            draft.Extent(first=0, settled=True, state=rejected),
            draft.Extent(first=1, settled=True, state=made),
        ),
    )
    assert first.state == final.Rejected()
    assert second.state == Declared(txn_id=b"t")


# Transfer units -------------------------------------------------------------------------------------


def counting(unit: int, link_credit: int | None) -> tuple[Script, Any]:
    script = Script()
    link = script.attach(True, transfer_unit=unit, flow_state=state(100, link_credit=link_credit))
    script.said()
    return script, link


def said_of(script: Script) -> list[tuple[int, int, bool]]:
    """Count, octets and whether more is to come, of each transfer."""
    return [
        (
            body.flow_state.transfer_count,
            sum(len(fragment.payload) for fragment in body.fragments),
            bool(body.more),
        )
        for body in script.said()
        if isinstance(body, draft.Transfer)
    ]


def test_message_takes_the_credit_of_all_its_units() -> None:
    script, link = counting(10, 7)
    assert link.send(Message(b"x" * 25).to_payload()) is not None
    assert link.send(Message(b"").to_payload()) is not None
    assert link.send(Message(b"x" * 30).to_payload()) is not None
    assert link.send(Message(b"x").to_payload()) is None
    assert said_of(script) == [(3, 25, False), (4, 0, False), (7, 30, False)]


def test_message_is_sent_as_far_as_the_credit_goes() -> None:
    script, link = counting(10, 2)
    delivery = link.send(Message(b"x" * 55).to_payload())
    assert delivery is not None
    assert link.send(Message(b"y").to_payload()) is None
    assert said_of(script) == [(2, 20, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=2, link_credit=0))
    assert said_of(script) == []
    script << draft.Flow(handle=0, flow_state=state(transfer_count=2, link_credit=1))
    assert said_of(script) == [(3, 10, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=3, link_credit=4))
    assert said_of(script) == [(6, 25, False)]
    assert link.credit == 1
    assert link.send(Message(b"y").to_payload()) is not None
    assert said_of(script) == [(7, 1, False)]
    script << draft.Disposition(role=True, extents=(draft.Extent(first=0, settled=True, state=ACCEPTED),))
    assert delivery.settled


def test_fragments_are_joined_again_that_the_credit_has_parted() -> None:
    script, link = counting(100, 1)
    link.send(Message(Data(b"a" * 150, b"b" * 150)).to_payload())
    fragments = list(script.said()[0].fragments)
    for count in (1, 2):
        script << draft.Flow(handle=0, flow_state=state(transfer_count=count, link_credit=1))
        fragments += script.said()[0].fragments
    assert [
        (each.first, each.last, each.fragment_offset, len(each.payload))
        for each in fragments
        if each.format_code == 3
    ] == [
        (True, False, 0, 100),
        (False, True, 100, 50),
        (True, False, 150, 50),
        (False, True, 200, 100),
    ]


def test_drain_gives_up_what_is_left_in_units() -> None:
    script, link = counting(10, 5)
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=5, drain=True))
    link.drained()
    (flow,) = script.said()
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (5, 0)
    script << draft.Flow(handle=0, flow_state=state(transfer_count=None, link_credit=8))
    link.send(PAYLOAD)
    assert said_of(script) == [(6, 1, False)]


def test_message_in_the_middle_is_not_given_up_by_a_drain() -> None:
    script, link = counting(10, 1)
    link.send(Message(b"x" * 15).to_payload())
    script.said()
    script << draft.Flow(handle=0, flow_state=state(transfer_count=1, link_credit=0, drain=True))
    link.drained()
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 1


def test_message_that_has_begun_waits_where_credit_was_taken_back() -> None:
    script, link = counting(10, 2)
    partial = link.begin(Message(Data(b"", b"x" * 12)).to_payload())
    assert said_of(script) == [(0, 0, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=0))
    partial.finish()
    assert said_of(script) == []
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=1))
    first = script.said()[0].fragments
    script << draft.Flow(handle=0, flow_state=state(transfer_count=1, link_credit=1))
    second = script.said()[0].fragments
    assert [each.format_code for each in (*first, *second)] == [0, 1, 3, 3, 3, 2]


def test_units_of_an_outgoing_end_are_ignored_and_without_a_limit_all_is_sent() -> None:
    script = Script()
    link = script.attach(False, transfer_unit=5)
    link.set_credit(1)
    script.said()
    script << transfer(0, data(b"x" * 50))
    assert len(link.queue) == 1
    script, link = counting(10, None)
    link.send(Message(b"x" * 500).to_payload())
    assert said_of(script) == [(50, 500, False)]


def test_handles_of_the_two_ends_have_nothing_to_do_with_each_other() -> None:
    script = Script()
    one = script.attach(False, name="one", handle=7)
    two = script.attach(False, name="two", handle=3)
    assert [body.handle for body in script.said()] == [one.handle, two.handle] == [0, 1]
    for link in (one, two):
        link.set_credit(5)
    assert [body.handle for body in script.said()] == [0, 1]
    script << transfer(0, data(b"for two"), handle=3) << transfer(1, data(b"for one"), handle=7)
    assert [len(link.queue) for link in (one, two)] == [1, 1]
    assert Message.from_payload(one.queue[0].payload).body == b"for one"
    script << draft.Detach(handle=7)
    (detach,) = script.said()
    assert detach.handle == 0
    assert (one.state, two.state) == (LinkState.GONE, LinkState.ATTACHED)


def test_receiver_says_the_last_count_that_the_sender_named() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=4))
    link.set_credit(20)
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 4
    script << draft.Flow(handle=0, flow_state=state(transfer_count=9))
    link.set_credit(21)
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 9


def test_sender_that_settles_first_hears_nothing_and_one_that_does_not_hears_the_outcome() -> None:
    script, link = receiving()
    script << transfer(0, data(b"once at most"), settled=True)
    link.queue.popleft().accept()
    assert script.said() == []
    script << transfer(1, data(b"once at least"))
    delivery = link.queue.popleft()
    assert not delivery.settled
    delivery.accept()
    (disposition,) = script.said()
    (extent,) = disposition.extents
    assert (extent.first, extent.settled) == (1, True)
    assert delivery.settled


def test_receiver_that_names_no_count_counts_from_the_first() -> None:
    script, link = counting(10, 5)
    assert link.send(Message(b"x" * 50).to_payload()) is not None
    assert said_of(script) == [(5, 50, False)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=None, link_credit=8))
    assert link.send(Message(b"y" * 50).to_payload()) is not None
    assert said_of(script) == [(8, 30, True)]


def test_sender_says_what_waits_beside_a_count_that_has_not_moved() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=1, available=7))
    assert (link.available, link.delivery_count) == (7, 1)
