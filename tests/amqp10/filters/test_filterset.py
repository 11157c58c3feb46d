"""The filter-set of a source."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from trio_amqp10.amqp10.filters import FilterError, capabilities, parse_filters
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described, Symbol, UInt, ULong
from trio_amqp10.core.errors import RemoteProtocolError

RED = Message(subject="fruit.apple", application_properties={"colour": "red"})
GREEN = Message(subject="fruit.pear", application_properties={"colour": "green"})
BROKEN = Message.from_payload(b"\x00\x53\x73\x40")


def over_the_wire(filters: dict[str, Any]) -> Any:
    """As the other side reads it."""
    octets = bytes(encode({Symbol(name): value for name, value in filters.items()}))
    return decode(octets, 0)[0]


@pytest.mark.parametrize(
    ("descriptor", "value"),
    [
        ("apache.org:selector-filter:string", "colour = 'red'"),
        (0x468C00000004, "colour = 'red'"),
        ("amqp:sql-filter", 'colour = "red"'),
        (0x120, "a.colour = 'red'"),
        ("apache.org:legacy-amqp-direct-binding:string", "fruit.apple"),
        (0x468C00000000, "fruit.apple"),
        ("apache.org:legacy-amqp-topic-binding:string", "#.apple"),
        (0x468C00000001, "*.apple"),
        ("amqp:properties-filter", {Symbol("subject"): "&s:apple"}),
        (0x173, {Symbol("subject"): "fruit.apple"}),
        ("amqp:application-properties-filter", {"colour": "red"}),
        (0x174, {"colour": "&p:r"}),
    ],
)
def test_filter_is_applied_and_echoed(descriptor: Any, value: Any) -> None:
    asked = over_the_wire({"f": Described(descriptor, value)})
    filters = parse_filters(asked)
    assert filters
    assert filters.echo == asked
    assert not filters.dropped
    assert filters.matches(RED)
    assert not filters.matches(GREEN)
    assert not filters.matches(BROKEN)


@pytest.mark.parametrize(
    ("descriptor", "value"),
    [
        ("apache.org:selector-filter:string", "colour = 'red'"),
        ("amqp:sql-filter", 'colour = "red"'),
        ("apache.org:legacy-amqp-direct-binding:string", "fruit.apple"),
        ("apache.org:legacy-amqp-topic-binding:string", "#.apple"),
        ("amqp:properties-filter", {Symbol("subject"): "&s:apple"}),
        ("amqp:application-properties-filter", {"colour": "red"}),
    ],
)
def test_filter_says_the_same_of_a_message_whenever_it_is_asked(descriptor: str, value: Any) -> None:
    filters = parse_filters(over_the_wire({"f": Described(descriptor, value)}))
    for _ in range(3):
        assert [filters.matches(each) for each in (RED, GREEN, BROKEN)] == [True, False, False]


@pytest.mark.parametrize("asked", [None, {}, {Symbol("f"): None}])
def test_everything_passes_when_there_are_no_filters(asked: Any) -> None:
    filters = parse_filters(asked)
    assert not filters
    assert filters.echo == {}
    assert filters.matches(BROKEN)
    assert repr(filters) == "<FilterSet of no filters>"


def test_message_passes_when_it_passes_all_filters() -> None:
    filters = parse_filters(
        {
            Symbol("a"): Described("apache.org:selector-filter:string", "colour LIKE '%r%'"),
            Symbol("b"): Described("apache.org:legacy-amqp-topic-binding:string", "fruit.*"),
        }
    )
    assert filters.matches(RED)
    assert filters.matches(GREEN)
    assert not filters.matches(Message(subject="fruit.plum"))
    assert "Described(" in repr(filters)


@pytest.mark.parametrize(
    "value",
    [
        Described("rabbitmq:stream-offset-spec", "first"),
        Described("apache.org:legacy-amqp-headers-binding:map", {}),
        Described(UInt(0x173), {Symbol("to"): "x"}),
        Described([], "x"),
        "colour = 'red'",
    ],
)
def test_filter_is_dropped_when_it_is_not_understood(value: Any) -> None:
    filters = parse_filters({Symbol("x"): value, Symbol("y"): Described(0x120, "TRUE")})
    assert filters.dropped == {Symbol("x"): value}
    assert list(filters.echo) == ["y"]
    assert filters.matches(RED)


@pytest.mark.parametrize(
    ("descriptor", "value", "words", "position"),
    [
        (0x468C00000004, "colour = ", "filter 'x': unexpected end.* at position 9", 9),
        (0x120, 5, "an expression must be a string, not 5", None),
        (0x468C00000001, 5, "a subject filter", None),
        (0x173, {}, "0 properties", None),
    ],
)
def test_filter_raises_when_it_is_malformed(
    descriptor: int, value: Any, words: str, position: int | None
) -> None:
    with pytest.raises(FilterError, match=words) as caught:
        parse_filters({Symbol("x"): Described(descriptor, value)})
    assert caught.value.position == position
    assert caught.value.condition == "amqp:invalid-field"


@pytest.mark.parametrize("value", [[], "NoLocalFilter{}"])
@pytest.mark.parametrize("descriptor", [ULong(0x468C00000003), Symbol("apache.org:no-local-filter:list")])
def test_no_local_keeps_a_message_from_where_it_came(descriptor: Any, value: Any) -> None:
    filters = parse_filters({Symbol("no-local"): Described(descriptor, value)})
    assert filters
    assert filters.no_local
    assert list(filters.echo) == ["no-local"]
    assert not filters.matches(RED, link_container_id="me", origin="me")
    assert filters.matches(RED, link_container_id="me", origin="you")
    assert filters.matches(RED, link_container_id="me")
    assert filters.matches(RED)


def test_message_goes_back_where_it_came_from_unless_no_local_is_asked_for() -> None:
    assert parse_filters(None).matches(RED, link_container_id="me", origin="me")


def test_filters_read_no_body() -> None:
    filters = parse_filters(
        {
            Symbol("a"): Described(ULong(0x120), "a.colour = 'red'"),
            Symbol("b"): Described(ULong(0x173), {Symbol("subject"): "fruit.apple"}),
        }
    )
    head = RED.to_payload().partition(b"\x00\x53\x77")[0]
    broken = Message.from_payload(head + b"\x00\x53\x77\xa1\x01\xff")  # a string that is no UTF-8
    with pytest.raises(RemoteProtocolError):
        _ = broken.body
    assert filters.matches(broken)


def test_expressions_are_dropped_when_the_parser_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "APACHE.ORG:SELECTOR" in capabilities()
    monkeypatch.setitem(sys.modules, "trio_amqp10.amqp10.filters.grammar", None)
    filters = parse_filters({Symbol("x"): Described(0x120, "a = 1"), Symbol("y"): Described(0x174, {"a": 1})})
    assert list(filters.dropped) == ["x"]
    assert list(filters.echo) == ["y"]
    assert capabilities() == ("APACHE.ORG:NO_LOCAL", "AMQP_FILTEX_PROP_V1_0")


def test_message_of_another_format_passes_no_filter_that_reads_it() -> None:
    other = Message.from_payload(RED.to_payload(), message_format=0x100)
    assert parse_filters({}).matches(other)
    assert parse_filters({Symbol("x"): Described(Symbol("apache.org:no-local-filter:list"), [])}).matches(
        other
    )
    only_apples = parse_filters({Symbol("x"): Described(ULong(0x173), {Symbol("subject"): "fruit.apple"})})
    assert only_apples.matches(RED)
    assert not only_apples.matches(other)
