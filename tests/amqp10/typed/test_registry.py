"""The registry: what it knows, messages, other people's classes, names that come later."""

from __future__ import annotations

import collections
import datetime
import pathlib
import textwrap
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

import trio_amqp10.typed
from trio_amqp10.amqp10.message import Message, Value, encode_message
from trio_amqp10.amqp10.wire import fields
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.typed import REST, Key, Registry

from .lines import LINE, TYPES, VALUE, Line, Mapped, Pair

# Messages ----------------------------------------------------------------------------------------------


def received(message: Any) -> Message:
    return Message.from_payload(encode_message(message))


@pytest.mark.parametrize("obj", [LINE, Pair(1, LINE), Mapped(1)])
def test_declared_object_is_a_value_like_any_other(obj: Any) -> None:
    assert decode(encode(obj))[0] == TYPES.to_value(obj)
    assert TYPES.read(received(obj), type(obj)) == obj
    assert TYPES.read(received(Message(obj, subject="s")), type(obj)) == obj


def test_object_inside_of_others_is_encoded_at_its_depth() -> None:
    nested: Any = LINE
    for _ in range(30):
        nested = [nested]
    assert decode(encode(nested))
    with pytest.raises(LocalProtocolError, match="more than 32 levels"):
        encode([nested])


def test_declared_object_that_does_not_fit_is_refused_when_it_is_sent() -> None:
    with pytest.raises(LocalProtocolError, match=r"Line\.count: expected uint"):
        encode_message(Line("a", -1))


def test_message_has_the_value_as_its_body() -> None:
    message = received(TYPES.message(LINE, subject="s", ttl=5))
    assert (message.subject, message.ttl, message.body) == ("s", 5, VALUE)
    assert received(TYPES.message(b"a")).sections == (Value(b"a"),)
    assert received(TYPES.message([1], list[fields.ulong])).body[0].__class__ is ULong


def test_body_is_read_as_what_its_descriptor_says_without_a_class() -> None:
    message = received([LINE, 5])
    assert TYPES.read(message) == [LINE, 5]
    assert TYPES.read(message, list[Line | int]) == [LINE, 5]


def test_body_that_is_no_message_is_the_peers_fault() -> None:
    with pytest.raises(RemoteProtocolError):
        TYPES.read(Message.from_payload(b"\x00"), Line)


# Looking up --------------------------------------------------------------------------------------------


def test_class_of_another_registry_is_sent_as_it_says_and_not_as_a_bare_map() -> None:
    types = Registry()
    assert types.to_value([LINE]) == [VALUE]
    with pytest.raises(TypeError, match="Line encodes itself, or was declared in another registry"):
        types.from_value(Line, VALUE)


@pytest.mark.parametrize(("name", "code"), [("é", None), ("a", -1), ("a", 2**64)])
def test_descriptor_that_cannot_be_is_refused(name: str, code: int | None) -> None:
    with pytest.raises(LocalProtocolError):
        Registry().composite(name, code)


# Other people's classes ---------------------------------------------------------------------------------


def adapting() -> Registry:
    types = Registry(TYPES)
    types.adapt(
        datetime.timedelta,
        float,
        datetime.timedelta.total_seconds,
        lambda seconds: datetime.timedelta(seconds=seconds),
    )
    types.adapt(pathlib.PurePath, str, str, pathlib.PurePath)
    types.adapt(uuid.UUID, str, str, uuid.UUID)
    types.adapt(datetime.date, str, datetime.date.isoformat, datetime.date.fromisoformat)
    types.adapt(collections.Counter, list[str], lambda counts: list(counts.elements()), collections.Counter)
    return types


@pytest.mark.parametrize(
    ("annotation", "obj", "value"),
    [
        (datetime.timedelta, datetime.timedelta(seconds=1.5), 1.5),
        (pathlib.PurePath, pathlib.PurePath("/a"), "/a"),
        (uuid.UUID, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (int | pathlib.PurePath, pathlib.PurePath("/a"), "/a"),
        (int | collections.Counter, collections.Counter("aab"), ["a", "a", "b"]),
        (list[datetime.date], [datetime.date(2024, 5, 6)], ["2024-05-06"]),
    ],
)
def test_adapted_class_travels_as_what_two_functions_make_of_it(
    annotation: Any, obj: Any, value: Any
) -> None:
    types = adapting()
    assert types.to_value(obj) == value
    assert types.to_value(obj, annotation) == value
    assert types.from_value(annotation, value) == obj


def test_registry_adapts_what_another_registry_adapts() -> None:
    assert Registry(adapting()).to_value(datetime.timedelta(seconds=1)) == 1.0


def test_subclass_that_has_a_type_of_its_own_is_not_adapted() -> None:
    moment = datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC)
    assert adapting().to_value(moment).to_datetime() == moment


def test_adapted_class_refuses_what_its_functions_refuse() -> None:
    types = adapting()
    with pytest.raises(RemoteProtocolError, match="not a UUID: badly formed") as caught:
        types.from_value(uuid.UUID, "x")
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(RemoteProtocolError, match="expected string, got long 1"):
        types.from_value(uuid.UUID, 1)
    with pytest.raises(LocalProtocolError, match="expected UUID, got int 1"):
        types.to_value(1, uuid.UUID)


def test_adapted_class_refuses_to_send_what_its_function_refuses() -> None:
    types = Registry()
    types.adapt(complex, float, lambda number: float(str(number)), complex)
    with pytest.raises(LocalProtocolError, match="a complex that cannot be sent: could not convert"):
        types.to_value(1j)


def test_adapted_class_cannot_travel_as_null() -> None:
    types = Registry()
    types.adapt(complex, int | None, abs, complex)
    with pytest.raises(TypeError, match="a complex cannot be sent as null"):
        types.from_value(complex, 1)


# Names -------------------------------------------------------------------------------------------------


def test_name_that_comes_later_is_found_at_the_first_use() -> None:
    types = Registry()

    @types.composite("test:node:list")
    @dataclass
    class Node:
        leaf: Leaf
        next: Node | None = None

    with pytest.raises(TypeError, match="name 'Leaf' is not defined"):
        types.to_value(Node(None))  # type: ignore[arg-type]

    @types.composite("test:leaf:list")
    @dataclass
    class Leaf:
        a: int

    node = Node(Leaf(1), Node(Leaf(2)))
    assert types.from_value(Node, types.to_value(node)) == node


def test_name_of_the_module_comes_before_a_declared_class_of_that_name() -> None:
    types = Registry(TYPES)
    types.composite("test:local:list")(dataclass(type("Pair", (), {"__annotations__": {"x": int}})))

    @types.composite("test:holder:list")
    @dataclass
    class Holder:
        pair: Pair
        next: Holder | None = None

    assert types.from_value(Holder, types.to_value(Holder(Pair(1, LINE)))) == Holder(Pair(1, LINE))


def test_annotations_of_two_classes_of_one_name_are_two_annotations() -> None:
    def make(kind: type[Any]) -> Any:
        return dataclass(type("Same", (), {"__annotations__": {"a": kind}}))

    types = Registry()
    assert types.from_value(list[make(int)], [{"a": 1}])[0].a == 1
    assert types.from_value(list[make(str)], [{"a": "x"}])[0].a == "x"


def test_tuple_without_annotations_holds_any_values() -> None:
    point = collections.namedtuple("point", ["x", "y"], defaults=[5])  # noqa: PYI024
    assert TYPES.to_value(point(1)) == [1, 5]
    assert TYPES.from_value(point, [LINE.article]) == point("a")


def test_key_is_a_value() -> None:
    assert Key("a") == Key("a") != Key("b")
    assert Key("a") != "a"
    assert len({Key("a"), Key("a")}) == 1
    assert (repr(Key("a")), repr(REST)) == ("Key('a')", "REST")


# The docstring -----------------------------------------------------------------------------------------


def test_docstring_declares_what_it_says() -> None:
    assert trio_amqp10.typed.__doc__ is not None
    declare, rest = trio_amqp10.typed.__doc__.split("Send and receive\n", 1)
    source = "\n".join(
        textwrap.dedent(block.split("::\n", 1)[1].split("\n\nA ", 1)[0]) for block in _blocks(declare)
    )
    scope: dict[str, Any] = {
        "__name__": __name__,
        "amqp": _Public,
        "dataclass": dataclass,
        "field": field,
        "datetime": datetime.datetime,
        "UUID": uuid.UUID,
        "Decimal": Decimal,
    }
    exec(compile(source, "docstring", "exec", dont_inherit=True), scope)
    types, moment = scope["types"], datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC)
    order = scope["Order"](uuid.UUID(int=1), moment, [scope["Line"]("a", 2, Decimal(1))])
    person = scope["Person"]("a", moment)
    assert types.read(received(order), scope["Order"]) == order
    assert types.read(received(types.message(person)), scope["Person"]) == person
    value = types.to_value(order)
    value.value[2][0].value[1] = "x"
    with pytest.raises(RemoteProtocolError, match=r"Order\.lines\[0\]\.count: expected uint, got string 'x'"):
        types.from_value(scope["Order"], value)
    assert "Order.lines[2].count: expected uint, got string 'x'" in rest


class _Public:
    Registry = Registry
    uint = fields.uint


def _blocks(text: str) -> list[str]:
    return [part for part in text.split("\n\nA ") if "::\n" in part]
