"""Each rule of ``Strict`` that is not enforced is counted, under its name there, when a peer breaks it."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from tests.naive.performatives import frame, header, raw_frame, sections
from tests.naive.script import Script
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.sasl_client import SaslClient
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.spec.security import SaslMechanisms
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import SASL_FRAME, encode_frame
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.peer_rules import RULES, Strict
from trio_amqp10.core.tolerances import Tolerances
from trio_amqp10.sasl import Anonymous

from .helpers import attach, transfer
from .links import disposition
from .test_strict import begun, receiving, sending

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANT = Strict.all(False)


def open_with(properties: bytes) -> Tolerances:
    """What an open with these octets for its properties counts."""
    octets = b"\xa1\x01x" + b"\x40" * 8 + properties
    connection = Connection("engine", strict=TOLERANT)
    Script(connection) << header() + raw_frame(bytes((0, 0x53, 0x10, 0xC0, len(octets) + 1, 10)) + octets)
    return connection.context.tolerances


def read(payload: bytes) -> Tolerances:
    """What reading a whole message counts."""
    found = Tolerances()
    message = message_class(TOLERANT).from_payload(payload, 0, found)
    assert message.body is not None
    assert message.annotations is not None
    assert message.application_properties is not None
    return found


def sasl_frame_size() -> Tolerances:
    found = Tolerances()
    client = SaslClient([Anonymous()], tolerances=found)
    names = (Symbol("ANONYMOUS"), *(Symbol("X" * 20) for _ in range(40)))
    client.receive_data(encode_frame(0, encode(SaslMechanisms(sasl_server_mechanisms=names)), SASL_FRAME))
    return found


def open_frame_size() -> Tolerances:
    connection = Connection("engine", strict=TOLERANT)
    Script(connection) << header() + frame("open", container_id="x" * 600)
    return connection.context.tolerances


def permitted_outcome() -> Tolerances:
    link, script = sending(TOLERANT, Source(outcomes=("amqp:accepted:list",)))
    link.send(b"m")
    script << disposition(True, 0, state=("rejected", {}))
    return link.context.tolerances


def initial_delivery_count() -> Tolerances:
    session, script = begun(TOLERANT)
    session.receiver("x").attach(source=Source(address="q"))
    script << attach(initial_delivery_count=None, source=("source", {}))
    return session.context.tolerances


def field_keys() -> Tolerances:
    return open_with(bytes.fromhex("c10502a1016b41"))


def duplicate_map_keys() -> Tolerances:
    return open_with(bytes.fromhex("c10904a3016b41a3016b42"))


def annotation_keys() -> Tolerances:
    return read(sections(("message-annotations", {"x-opt-a": 1, "y": 2, "z": 3}), ("data", b"m")))


def section_order() -> Tolerances:
    return read(sections(("data", b"m"), ("application-properties", {"a": 1}), ("properties", {})))


def incoming_window() -> Tolerances:
    link, script = receiving(TOLERANT, Limits(incoming_window=1), credit=100)
    link.session.windows.low = -1  # it is not announced anew meanwhile
    script << transfer(0) + transfer(1)
    return link.context.tolerances


def link_credit() -> Tolerances:
    link, script = receiving(TOLERANT, Limits(incoming_window=3), credit=1)
    script << transfer(0) + transfer(1)
    return link.context.tolerances


def settle_mode() -> Tolerances:
    session, script = begun(TOLERANT)
    link = session.receiver("x")
    link.attach(source=Source(address="q"), snd_settle_mode=0)
    script << attach(source=("source", {}), snd_settle_mode=0)
    link.set_credit(1)
    script << transfer(0, settled=True)
    return session.context.tolerances


def handle_max() -> Tolerances:
    session, script = begun(TOLERANT, Limits(handle_max=1))
    script << attach(name="a", handle=1000)
    return session.context.tolerances


def attach_after_error() -> Tolerances:
    link, script = receiving(TOLERANT)
    link.detach(closed=False, error=Error(condition="amqp:internal-error"))
    script << frame("detach", handle=0) + attach(name="x", handle=1)
    return link.context.tolerances


BREACHES: dict[str, Callable[[], Tolerances]] = {
    each.__name__: each
    for each in (
        sasl_frame_size,
        open_frame_size,
        permitted_outcome,
        initial_delivery_count,
        field_keys,
        annotation_keys,
        duplicate_map_keys,
        section_order,
        incoming_window,
        link_credit,
        settle_mode,
        handle_max,
        attach_after_error,
    )
}
"""One breach of each rule, by its name in ``Strict``."""


@pytest.mark.parametrize("rule", [setting.name for setting in fields(Strict)])
def test_breach_of_each_rule_that_is_tolerated_is_counted_once_under_its_name(rule: str) -> None:
    assert rule in BREACHES, "a new rule: break it here once, and count it where it is tolerated"
    assert BREACHES[rule]().figures() == {rule: 1}


def test_peer_that_breaks_no_rule_is_not_counted() -> None:
    link, script = receiving(TOLERANT)
    script << transfer(0) + transfer(1, payload=sections(("properties", {}), ("data", b"m")))
    assert link.context.tolerances.figures() == {}


def test_counts_add_up_and_are_a_copy() -> None:
    counts = Tolerances()
    for name in ("handle-max", "link-credit", "handle-max"):
        counts.note(RULES[name])
    figures = counts.figures()
    assert figures == {"handle_max": 2, "link_credit": 1}
    figures.clear()
    assert counts.figures() == {"handle_max": 2, "link_credit": 1}


def test_message_that_is_read_again_is_counted_once() -> None:
    counts = Tolerances()
    payload = sections(("message-annotations", {"y": 2}), ("data", b"m"))
    message = Message.from_payload(payload, 0, counts)
    assert [dict(message.annotations) for _ in range(2)] == [{"y": 2}] * 2
    assert counts.figures() == {"annotation_keys": 1}
    assert dict(Message.from_payload(payload).annotations) == {"y": 2}
