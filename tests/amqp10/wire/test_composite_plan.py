"""How the plan of a composite lays out its list, and what it refuses (1.4)."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from trio_amqp10.amqp10.spec.messaging import (
    ACCEPTED,
    RELEASED,
    DeleteOnClose,
    Header,
    Properties,
    Received,
    Source,
    Target,
)
from trio_amqp10.amqp10.spec.transactions import Discharge
from trio_amqp10.amqp10.spec.transport import Attach, Close, Detach, Error, Flow
from trio_amqp10.amqp10.wire.composite import composite, plan_of
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import Multiple, archetype
from trio_amqp10.core.errors import LocalProtocolError

from .composites import ATTACH, Brush, Colour, Paint, octets


@pytest.mark.parametrize("obj", [ACCEPTED, RELEASED, Close(), Header(), DeleteOnClose()])
def test_composite_without_fields_is_never_the_empty_list(obj: Any) -> None:
    assert octets(obj) == f"0053{int(plan_of(type(obj)).code):02x}c00100"


def test_composite_leaves_out_trailing_nulls_and_defaults() -> None:
    assert (
        octets(Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3)) == "005313c0080440520152025203"
    )
    assert octets(Header(priority=4, ttl=None)) == "005370c00100"
    assert octets(Header(delivery_count=1)) == "005370c007054040404052" + "01"


def test_composite_sends_a_default_when_its_field_is_mandatory() -> None:
    assert octets(Received(section_number=0, section_offset=0)) == "005323c003024344"


def test_composite_takes_the_long_list_when_the_short_one_is_full() -> None:
    assert octets(Error(condition="a", description="x" * 248)).startswith("00531dc0fe02a30161a1f8")
    assert octets(Error(condition="a", description="x" * 250)).startswith(
        "00531dd00000010300000002a30161a1fa"
    )


def test_composite_has_a_long_descriptor_when_its_domain_is_not_the_standard() -> None:
    assert octets(Paint(colour=Colour.RED)) == "00800000000100000001c0020143"
    assert octets(Brush(width=1)) == "005300c003015201"


REFUSED: list[tuple[Any, str]] = [
    (Attach(**ATTACH | {"handle": None}), "amqp:attach:list.handle is mandatory"),
    (Attach(**ATTACH | {"handle": 2**32}), "attach:list.handle: 4294967296 is out of the range of a uint"),
    (Attach(**ATTACH | {"handle": True}), "attach:list.handle: True is not a uint"),
    (Attach(**ATTACH | {"role": 1}), "attach:list.role: 1 is not a boolean"),
    (Attach(**ATTACH | {"name": b"a"}), "attach:list.name: b'a' is not a str"),
    (Attach(**ATTACH, snd_settle_mode=7), "snd-settle-mode: 7 is not a valid sender-settle-mode"),  # type: ignore[arg-type]
    (Attach(**ATTACH, snd_settle_mode=True), "snd-settle-mode: True is not a valid sender"),  # type: ignore[arg-type]
    (Attach(**ATTACH, rcv_settle_mode=[]), r"rcv-settle-mode: \[\] is not a valid receiver"),  # type: ignore[arg-type]
    (Attach(**ATTACH, source="a"), "source: 'a' is not a valid source"),
    (Attach(**ATTACH, source=Target()), "source: amqp:target:list does not provide source"),
    (
        Attach(**ATTACH, source=Source(address=1)),
        "attach:list.source: amqp:source:list.address: 1 is not a valid address",
    ),
    (Attach(**ATTACH, properties={1: 2}), "properties: a key of this map must be a symbol, not 1"),
    (Attach(**ATTACH, properties=[1]), "properties: .* is not a mapping"),  # type: ignore[arg-type]
    (Attach(**ATTACH, unsettled=5), "unsettled: 5 is not a mapping"),  # type: ignore[arg-type]
    (Attach(**ATTACH, desired_capabilities=["a", "é"]), "desired-capabilities: an array of symbol"),
    (Detach(handle=0, error="x"), "error: 'x' is not amqp:error:list"),  # type: ignore[arg-type]
    (Properties(message_id=True), "message-id: True is not a valid message-id"),
    (Properties(message_id=1.5), "message-id: 1.5 is not a valid message-id"),
    (Discharge(txn_id="a"), "txn-id: 'a' is not a valid txn-id"),
]


@pytest.mark.parametrize(("obj", "text"), REFUSED)
def test_composite_refuses_a_field_that_it_cannot_send(obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError, match=text):
        encode(obj)


def test_composite_refuses_an_annotation_that_says_no_type() -> None:
    def declare(annotation: Any) -> None:
        namespace: dict[str, Any] = {"__annotations__": {"field": annotation}, "__module__": __name__}
        composite("example:bad:list", 0x99)(type("Bad", (), namespace))

    for annotation in (int, int | None, Annotated[int, "no mark of ours"]):
        with pytest.raises(TypeError, match="has no AMQP type"):
            declare(annotation)
    with pytest.raises(TypeError, match="cannot be multiple"):
        declare(Multiple[Annotated[Any, archetype("x")]])
    declare(Annotated[Colour, "a remark"])
