"""The rules that can be held strictly or not, each both ways on the wire; see ``Strict``."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.naive.performatives import frame, header, raw_frame, sections
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionOpened, LinkAttached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.sasl_layer import sasl_frame_size
from trio_amqp10.amqp10.engine.session_windows import SessionWindows
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Modified, Released, Source
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.peer_rules import Strict

from .helpers import BEGIN, attach, error, flow, refused, transfer
from .helpers import receiving as receiving_with
from .links import ACCEPTED, disposition, session_of

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.session import Session

STRICT, TOLERANT = Strict.all(True), Strict.all(False)


def begun(strict: Strict, limits: Limits | None = None) -> tuple[Session, Script]:
    """A session that we began, on channel 0 both ways."""
    connection = Connection("engine", limits=limits, strict=strict)
    connection.open()
    script = Script(connection)
    script.exchange_open()
    session = connection.session()
    session.begin()
    script >> expected("begin")
    script << frame("begin", remote_channel=0, **BEGIN)
    script.events.clear()
    return session, script


def receiving(
    strict: Strict, limits: Limits | None = None, *, credit: int = 10
) -> tuple[ReceiverLink, Script]:
    session, script = begun(strict, limits)
    link = session.receiver("x")
    link.attach(source=Source(address="q"))
    script >> expected("attach")
    script << attach(source=("source", {}))
    link.set_credit(credit)
    script >> expected("flow")
    return link, script


def sending(strict: Strict, source: Source) -> tuple[SenderLink, Script]:
    session, script = begun(strict)
    link = session.sender("x")
    link.attach(source=source)
    script >> expected("attach")
    script << attach(role=True, initial_delivery_count=None) + flow(handle=0, link_credit=10)
    return link, script


def test_defaults_are_tolerant_where_peers_are_known_to_need_it() -> None:
    tolerant = {name for name in Strict.__slots__ if not getattr(Strict(), name)}
    assert tolerant == {
        "sasl_frame_size",
        "open_frame_size",
        "permitted_outcome",
        "initial_delivery_count",
        "field_keys",
        "annotation_keys",
        "section_order",
        "settle_mode",
        "attach_after_error",
    }


# -- frames -----------------------------------------------------------------------------------------


def test_row_8_sasl_frame_has_512_octets_when_strict_and_8192_otherwise() -> None:
    assert sasl_frame_size(STRICT) == 512
    assert sasl_frame_size(TOLERANT) == 8192


@pytest.mark.parametrize(("strict", "most"), [(STRICT, 512), (TOLERANT, 8192)])
def test_row_21_open_before_ours_has_so_many_octets_and_no_more(strict: Strict, most: int) -> None:
    room = most - len(frame("open", container_id="x" * 300)) + 300
    fits = frame("open", container_id="x" * room)
    assert len(fits) == most
    script = Script(Connection("engine", strict=strict))
    script << header() + fits
    script.expect_event(ConnectionOpened)
    again = Script(Connection("engine", strict=strict))
    fault = refused(again, header() + frame("open", container_id="x" * (room + 1)))
    assert (fault.condition, fault.rule) == ("amqp:connection:framing-error", "open-frame-size")


def test_row_21_open_behind_ours_may_be_as_large_as_ours_said_when_strict() -> None:
    connection = Connection("engine", strict=STRICT, limits=Limits(max_frame_size=4096))
    connection.open()
    script = Script(connection)
    script << header() + frame("open", container_id="x" * 4000)
    assert connection.state is ConnectionState.OPENED
    assert script.expect_event(ConnectionOpened).open.container_id == "x" * 4000


# -- maps -------------------------------------------------------------------------------------------


def test_row_29_map_with_a_key_twice_in_a_performative_is_refused_when_strict_only() -> None:
    fields = b"\xa1\x01x" + b"\x40" * 8 + bytes.fromhex("c10904a3016b41a3016b42")
    octets = header() + raw_frame(bytes((0, 0x53, 0x10, 0xC0, len(fields) + 1, 10)) + fields)
    fault = refused(Script(Connection("engine", strict=STRICT)), octets)
    assert (fault.condition, fault.rule) == ("amqp:decode-error", "duplicate-map-keys")
    script = Script(Connection("engine", strict=TOLERANT))
    script << octets
    assert script.expect_event(ConnectionOpened).open.properties == {"k": False}


def test_row_29_keys_that_differ_in_their_type_only_do_not_end_a_connection() -> None:
    fields = b"\xa1\x01x" + b"\x40" * 8 + bytes.fromhex("c10904a3016b41a1016b42")
    octets = header() + raw_frame(bytes((0, 0x53, 0x10, 0xC0, len(fields) + 1, 10)) + fields)
    for strict in (replace(STRICT, field_keys=False), TOLERANT):
        script = Script(Connection("engine", strict=strict))
        script << octets
        properties = script.expect_event(ConnectionOpened).open.properties
        assert properties == PairMap([(Symbol("k"), True), ("k", False)])


# -- messages ---------------------------------------------------------------------------------------


STRANGE = [
    sections(("message-annotations", {"x-opt-a": 1, "x-y": 2}), ("data", b"m")),
    sections(("delivery-annotations", {"x-y": 2}), ("data", b"m")),
    sections(("data", b"m"), ("footer", {"x-opt": 2})),
    sections(("data", b"m")) + bytes.fromhex("005378c10402530141"),
    bytes.fromhex("005372c10a02a106") + b"x-opt-" + bytes.fromhex("41"),
]
"""Annotations of all three sections, with a ulong and a string for a key."""


@pytest.mark.parametrize("payload", STRANGE)
@pytest.mark.parametrize("size", [1000, 3], ids=["whole", "in parts"])
def test_annotation_that_is_not_known_ends_the_link_when_strict_only(payload: bytes, size: int) -> None:
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    octets = b"".join(transfer(0, payload=part, more=part is not parts[-1]) for part in parts)
    link, script = receiving(STRICT)
    script << octets
    script >> expected("detach", closed=True, error=error("amqp:not-implemented"))
    assert not link.queue
    tolerant, script = receiving(TOLERANT)
    script << octets
    assert [delivery.payload for delivery in tolerant.queue] == [payload]


@pytest.mark.parametrize(
    ("payload", "message_format"),
    [
        (sections(("message-annotations", {"x-opt-a": 1}), ("data", b"m"), ("footer", {"x-opt-b": 1})), 0),
        (sections(("data", b"m")), 0),
        (STRANGE[0], 1),  # of another format: what its octets are, nobody knows here
        (b"no message", 0),  # who reads it will see
    ],
)
def test_annotations_are_taken_when_strict_where_nothing_is_known_against_them(
    payload: bytes, message_format: int
) -> None:
    link, script = receiving(STRICT)
    script << transfer(0, payload=payload, message_format=message_format)
    assert [delivery.payload for delivery in link.queue] == [payload]


def test_annotations_of_a_message_that_is_read_while_it_comes_in_are_taken_when_strict() -> None:
    link, script = receiving(STRICT)
    link.streaming = True
    script << transfer(0, payload=STRANGE[0], more=True)
    assert link.queue[0].inflow is not None


# -- links ------------------------------------------------------------------------------------------


def test_row_54_outcome_that_is_not_permitted_ends_the_link_when_strict() -> None:
    link, script = sending(STRICT, Source(outcomes=("amqp:accepted:list",)))
    deliveries = [link.send(b"m") for _ in range(3)]
    script.collect().inbox.frames.clear()
    script << disposition(True, 0) + disposition(True, 1, 2, state=("rejected", {}))
    script >> expected("detach", closed=True, error=error("amqp:invalid-field"))
    script.expect_nothing()
    assert [d and d.settled for d in deliveries] == [True, False, False]
    assert [d and d.state for d in deliveries[1:]] == [None, None]


def test_row_54_outcome_that_is_not_permitted_reads_as_the_default_when_tolerant() -> None:
    link, script = sending(TOLERANT, Source(outcomes=("amqp:accepted:list",), default_outcome=Modified()))
    delivery = link.send(b"m")
    script << disposition(True, 0, state=("rejected", {}))
    assert delivery is not None
    assert delivery.state == Modified()
    assert delivery.settled


def test_row_54_outcome_that_is_permitted_is_taken_in_a_transaction_too_when_strict() -> None:
    link, script = sending(STRICT, Source(outcomes=("amqp:accepted:list",)))
    delivery = link.send(b"m")
    script.collect().inbox.frames.clear()
    script << disposition(
        True, 0, settled=False, state=("transactional-state", {"txn_id": b"t", "outcome": ACCEPTED})
    )
    script.expect_nothing()
    assert delivery is not None
    assert isinstance(delivery.state, TransactionalState)
    assert delivery.state.outcome != Released()


def test_row_58_sender_without_a_first_count_is_refused_when_strict() -> None:
    session, script = begun(STRICT)
    link = session.receiver("x")
    link.attach(source=Source(address="q"))
    script >> expected("attach")
    script << attach(initial_delivery_count=None, source=("source", {}))
    script >> expected("detach", closed=True, error=error("amqp:invalid-field"))
    assert not [event for event in script.events if isinstance(event, LinkAttached)]


def test_row_58_sender_that_refuses_need_not_count_when_strict() -> None:
    session, script = begun(STRICT)
    link = session.receiver("x")
    link.attach(source=Source(address="q"))
    script >> expected("attach")
    refusal = ("error", {"condition": "amqp:not-found"})
    script << attach(initial_delivery_count=None) + frame("detach", handle=0, closed=True, error=refusal)
    script >> expected("detach", error=None)
    assert link.error is not None
    assert link.error.condition == "amqp:not-found"


def test_row_58_sender_without_a_first_count_counts_from_0_when_tolerant() -> None:
    session, script = begun(TOLERANT)
    link = session.receiver("x")
    link.attach(source=Source(address="q"))
    script >> expected("attach")
    script << attach(initial_delivery_count=None, source=("source", {}))
    script.expect_event(LinkAttached)
    assert link.delivery_count == 0


def test_handle_above_ours_is_taken_when_tolerant_while_there_are_answers() -> None:
    session, script = begun(TOLERANT, Limits(handle_max=1))
    script << attach(name="a", handle=1000) + attach(name="b", handle=7)
    assert len([event for event in script.events if isinstance(event, LinkAttached)]) == 2
    script << attach(name="c", handle=2)
    script >> expected("end", error=error("amqp:resource-limit-exceeded"))
    assert session.state is SessionState.DISCARDING


def test_row_46_delivery_without_credit_is_taken_when_tolerant_while_few_wait() -> None:
    link, script = receiving(TOLERANT, Limits(incoming_window=3), credit=1)
    script << b"".join(transfer(n) for n in range(3))
    assert [delivery.delivery_id for delivery in link.queue] == [0, 1, 2]
    assert (link.credit, link.delivery_count) == (0, 3)
    script.collect().inbox.frames.clear()
    script << transfer(3)
    script >> expected("detach", error=error("amqp:link:transfer-limit-exceeded"))
    assert link.state is LinkState.DETACH_SENT


def test_row_44_transfers_beyond_the_window_are_taken_when_tolerant_as_many_again() -> None:
    link, script = receiving(TOLERANT, Limits(incoming_window=2), credit=100)
    script << b"".join(transfer(n) for n in range(4))
    assert len(link.queue) == 4
    assert script.expect("flow")["next_incoming_id"] == 4
    script << b"".join(transfer(n) for n in range(4, 9))
    assert script.expect("flow")["next_incoming_id"] == 8
    script >> expected("end", error=error("amqp:session:window-violation"))
    assert len(link.queue) == 8


def test_window_counts_what_is_beyond_it_until_it_is_announced_anew() -> None:
    windows = SessionWindows(2)
    windows.begun(10, 0, 0)
    assert [windows.received() for _ in range(3)] == [1, 0, -1]
    assert [windows.overrun() for _ in range(3)] == [True, True, False]
    assert (windows.next_incoming_id, windows.incoming_window) == (14, 0)
    windows.refill()
    assert windows.incoming_window == 2
    assert [windows.received() for _ in range(3)] == [1, 0, -1]
    assert windows.overrun()


@pytest.mark.parametrize("strict", [STRICT, TOLERANT])
@pytest.mark.parametrize("resumed", [True, False])
def test_attach_without_a_map_after_our_error_ends_the_session_when_strict_only(
    strict: Strict, resumed: bool
) -> None:
    link, script = receiving(strict)
    link.detach(closed=False, error=Error(condition="amqp:internal-error"))
    script >> expected("detach", closed=None)
    script << frame("detach", handle=0)
    script << attach(name="x", handle=1, unsettled={} if resumed else None)
    if strict is STRICT and not resumed:
        script >> expected("end", error=error("amqp:session:errant-link"))
    else:
        assert link.session.state is SessionState.MAPPED


def test_link_that_was_stolen_is_attached_without_a_map_when_strict_too() -> None:
    link, script = receiving(STRICT)
    for handle in (1, 2):
        script << attach(name="x", handle=handle)
        script >> expected("detach", error=error("amqp:link:stolen"))
        script << frame("detach", handle=handle - 1)
        link.session.by_remote_handle[handle].attach()
        script >> expected("attach")
    assert link.session.state is SessionState.MAPPED


def test_links_that_failed_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.amqp10.engine.session._FAILED", 1)
    link, script = receiving(STRICT)
    link.detach(closed=False, error=Error(condition="amqp:internal-error"))
    script << frame("detach", handle=0)
    other = session_of(link).receiver("y")
    other.attach(source=Source(address="q"))
    script << attach(name="y", handle=0, source=("source", {}))
    other.detach(closed=False, error=Error(condition="amqp:internal-error"))
    assert list(session_of(link).failed or ()) == [("y", True)]


@pytest.mark.parametrize(
    ("mode", "settled", "more", "fits"),
    [
        (0, None, False, True),
        (0, False, True, True),
        (0, True, False, False),
        (0, True, True, False),
        (1, True, False, True),
        (1, True, True, True),
        (1, None, False, False),
        (1, False, True, False),
        (2, True, False, True),
        (2, None, True, True),
    ],
)
@pytest.mark.parametrize("strict", [True, False])
def test_settled_goes_with_the_mode_of_the_link_when_strict_and_is_counted_otherwise(
    mode: int, settled: bool | None, more: bool, fits: bool, strict: bool
) -> None:
    link, script = receiving_with(snd_settle_mode=mode)
    link.context.strict = Strict(settle_mode=strict)
    script << transfer(0, settled=settled, more=more)
    if more and link.state is LinkState.ATTACHED:
        script << frame("transfer", handle=0, payload=b"the rest")
    assert (link.state is LinkState.ATTACHED) == (fits or not strict)
    assert link.missettled == (not fits)
    assert len(link.queue) == (fits or not strict)


@pytest.mark.parametrize("mode", [0, 1])
def test_delivery_that_is_aborted_may_be_settled_or_not(mode: int) -> None:
    link, script = receiving_with(snd_settle_mode=mode)
    link.context.strict = Strict(settle_mode=True)
    script << transfer(0, settled=mode == 0, more=False, aborted=True)
    assert link.state is LinkState.ATTACHED
    assert not link.missettled


def test_rest_of_a_delivery_is_settled_by_the_mode_of_the_link_when_strict() -> None:
    link, script = receiving_with(snd_settle_mode=0)
    link.context.strict = Strict(settle_mode=True)
    script << transfer(0, more=True)
    script << frame("transfer", handle=0, settled=True, payload=b"the rest")
    assert link.state is not LinkState.ATTACHED
    assert link.missettled == 1


def test_keys_of_fields_that_are_symbols_are_taken_when_strict() -> None:
    script = Script(Connection("engine", strict=STRICT))
    script << header() + frame("open", container_id="x", properties={Symbol("a"): 1, Symbol("b"): 2})
    assert script.expect_event(ConnectionOpened).open.properties == {"a": 1, "b": 2}
