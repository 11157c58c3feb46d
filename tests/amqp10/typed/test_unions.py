"""One of several types: decided by descriptor or by type, or refused when the class is made."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, NewType, TypedDict

import pytest

from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.fields import Multiple, symbol, ulong
from trio_amqp10.amqp10.wire.values import Array, Described, Symbol, Timestamp, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.typed import Registry

TYPES = Registry(Error)


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


@TYPES.composite("test:circle:list", 0x1_0000_0001)
@dataclass
class Circle(Shape):
    radius: float

    def area(self) -> float:
        return 3.14 * self.radius


@TYPES.composite("test:square:map", 0x1_0000_0002, encoding="map")
@dataclass
class Square(Shape):
    side: float

    def area(self) -> float:
        return self.side**2


@TYPES.composite("test:cube:map", 0x1_0000_0003, encoding="map")
@dataclass
class Cube(Square):
    colour: str = "red"


@TYPES.composite("test:pair:list")
class Pair(NamedTuple):
    a: int
    b: int


@dataclass
class Bare:
    a: int


@dataclass
class Undescribed(Shape):
    def area(self) -> float:
        return 0


class Keys(TypedDict):
    a: int


class Colour(enum.Enum):
    RED = "red"


Number = NewType("Number", int)

CIRCLE = Described(0x1_0000_0001, [1.0])
SQUARE = Described(0x1_0000_0002, {"side": 2.0})
CUBE = Described(0x1_0000_0003, {"side": 2.0, "colour": "red"})


@pytest.mark.parametrize(
    ("annotation", "obj", "value"),
    [
        (Circle | Square, Circle(1), CIRCLE),
        (Circle | Square, Square(2), SQUARE),
        (Circle | Square | None, None, None),
        (Circle | Square | None, Square(2), SQUARE),
        (Circle | None, Circle(1), CIRCLE),
        (Circle | None, None, None),
        (list[Circle | int | None], [Circle(1), 2, None], [CIRCLE, 2, None]),
        (Circle | Error, Error(condition="a"), Described(0x1D, [Symbol("a")])),
        (Circle | Described, Circle(1), CIRCLE),
        (Circle | Described, Described("other", 1), Described("other", 1)),
        (Circle | Described, Described(None, 1), Described(None, 1)),
        (int | str, 5, 5),
        (int | str, "a", "a"),
        (float | int, 5, 5),
        (float | int, 5.0, 5.0),
        (bool | int, True, True),
        (ulong | int, 5, ULong(5)),
        (int | ulong, -5, -5),
        (str | symbol, "a", Symbol("a")),
        (str | Colour, Colour.RED, "red"),
        (str | Colour, "blue", "blue"),
        (Literal["a"] | str, "b", "b"),  # noqa: PYI051
        (datetime | int, datetime.fromtimestamp(5, UTC), Timestamp(5000)),
        (list[int] | int, [5], [5]),
        (list[int] | Pair, Pair(1, 2), Described("test:pair:list", [1, 2])),
        (list[int] | Pair, [1, 2], [1, 2]),
        (Circle | Bare, Bare(1), {"a": 1}),
        (Circle | Keys, {"a": 1}, {"a": 1}),
        (dict[str, int] | list[int] | str, {"a": 1}, {"a": 1}),
        (str | Multiple[ulong], (1, 2), Array([ULong(1), ULong(2)], "ulong")),
        (str | Multiple[ulong], (), None),
        (Any | int, "a", "a"),
        (Any | None, None, None),
        (Number | str, 5, 5),
        (Shape, Circle(1), CIRCLE),
        (Shape | int, Square(2), SQUARE),
        (Shape | int, 5, 5),
        (list[Shape], [Cube(2), Circle(1)], [CUBE, CIRCLE]),
        (Square, Cube(2), CUBE),
        (Square | int, Cube(2), CUBE),
    ],
)
def test_union_is_decided_by_the_value_both_ways(annotation: Any, obj: Any, value: Any) -> None:
    sent = TYPES.to_value(obj, annotation)
    assert (sent.__class__, sent) == (value.__class__, value)
    found = TYPES.from_value(annotation, value)
    assert (found.__class__, found) == (obj.__class__, obj)


def test_tolerant_type_takes_what_no_member_of_the_union_claims() -> None:
    assert TYPES.from_value(float | str, UInt(5)) == 5.0
    assert TYPES.to_value(5, float | str) == 5.0


def test_order_of_a_union_does_not_matter_when_one_type_is_closer() -> None:
    for annotation in (ulong | int, int | ulong):
        assert TYPES.to_value(5, annotation).__class__ is ULong
        assert TYPES.from_value(annotation, UInt(5)) == 5


Maybe = NewType("Maybe", "int | Circle | None")  # type: ignore[valid-newtype]
Maybe.__supertype__ = int | Circle | None
Either = NewType("Either", int)
Either.__supertype__ = int | Circle  # type: ignore[assignment]


@pytest.mark.parametrize("obj", [None, 5, Circle(1), [1]])
def test_union_inside_of_a_union_takes_what_its_members_take(obj: Any) -> None:
    annotation = Maybe | list[int]
    assert TYPES.from_value(annotation, TYPES.to_value(obj, annotation)) == obj


def test_union_inside_of_a_union_refuses_what_none_takes() -> None:
    with pytest.raises(
        LocalProtocolError, match="expected an integer or Circle or a list of an integer, got str"
    ):
        TYPES.to_value("x", Either | list[int])


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (
            Circle | Square,
            Described("other", 1),
            "value: expected Circle or Square, got a value described by",
        ),
        (Circle | Square, 5, "value: expected Circle or Square, got long 5"),
        (Circle | Square | None, 5, "value: expected Circle or Square, got long 5"),
        (Circle | Square, SQUARE.__class__(0x1_0000_0002, {"side": "x"}), "value.side: expected a floating-"),
        (int | str | None, b"x", "value: expected an integer or string, got binary b'x'"),
        (Circle | None, 5, "value: expected Circle, got long 5"),
        (Literal["a"] | Colour, "b", "value: expected one of 'a' or Colour, got string 'b'"),
        (Shape, 5, "value: expected Shape, got long 5"),
        (Shape, Described(0x1D, ["a"]), "value: expected Shape, got a value described by"),
        (Square, CIRCLE, "Square: expected Square, got a value described by"),
        (Keys, CIRCLE, "Keys: expected the map of Keys, got a value described by"),
    ],
)
def test_value_of_none_of_the_types_is_refused(annotation: Any, value: Any, text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        TYPES.from_value(annotation, value)
    assert text in caught.value.description


@pytest.mark.parametrize(
    ("annotation", "obj", "text"),
    [
        (Circle | Square, 5, "value: expected Circle or Square, got int 5"),
        (int | str, b"x", "value: expected an integer or string, got bytes b'x'"),
        (Circle | None, 5, "value: expected Circle, got int 5"),
        (Shape, 5, "value: expected a described type that is a Shape, got int 5"),
        (Shape, Undescribed(), "value: expected a described type that is a Shape, got Undescribed"),
    ],
)
def test_object_of_none_of_the_types_is_refused(annotation: Any, obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj, annotation)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (
            list[int] | list[str],
            "a list of an integer and a list of string cannot be distinguished by a value",
        ),
        (Bare | Keys, "Bare and Keys cannot be distinguished by a value"),
        (Bare | dict[str, int], "Bare and a map cannot be distinguished by a value"),
        (Multiple[symbol] | symbol, "symbol and zero or more of symbol cannot be distinguished by a value"),
    ],
)
def test_union_that_no_value_decides_is_a_type_error(annotation: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        TYPES.from_value(annotation, [])


def test_union_of_two_types_with_one_descriptor_is_a_type_error() -> None:
    @dataclass
    class Special(Circle):
        """Not declared: what its base is."""

    with pytest.raises(TypeError, match="Special and Circle have the same descriptor"):
        TYPES.from_value(Circle | Special, 1)


def test_abstract_class_takes_subclasses_that_come_later() -> None:
    types = Registry(TYPES)

    @types.composite("test:drawing:list")
    @dataclass
    class Drawing:
        shapes: list[Shape]

    @types.composite("test:line:list")
    @dataclass
    class Line(Shape):
        length: float

        def area(self) -> float:
            return 0

    drawing = Drawing([Line(1), Circle(2)])
    assert types.from_value(Drawing, types.to_value(drawing)) == drawing
