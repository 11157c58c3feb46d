"""The fields of a class, by its annotations and defaults."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, NotRequired, TypedDict, TypeVar

import pytest

from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.typed.field_markers import REST, Key
from trio_amqp10.amqp10.typed.fields import fields_of, is_struct
from trio_amqp10.amqp10.typed.registry import Registry
from trio_amqp10.amqp10.typed.structs import Declaration

T = TypeVar("T")
AS_MAP = Declaration(None, None, "map", "string", None, "ignore")


@dataclass
class Bird:
    name: Annotated[str, Key("the-name")]
    size: int = field(default=0, metadata={"amqp": "the-size"})
    nest: str | None = None
    seen: int = field(default=0, init=False)


@dataclass
class Crow(Bird):
    age: int = 1


class Point(NamedTuple):
    x: int
    y: int = 0


class Config(TypedDict):
    host: str
    port: NotRequired[int]


@dataclass
class Page(Generic[T]):
    items: list[T]


def rows(cls: type[Any], *arguments: Any, **options: Any) -> list[tuple[str, str, bool, bool]]:
    """Name, key, whether it may be absent, and whether absence reads as None."""
    found = fields_of(cls, arguments, AS_MAP._replace(**options), Registry()._book.codec, {})
    return [(each.name, each.key, each.optional, each.omit_none) for each in found]


def test_dataclass_has_the_fields_of_its_bases_first_and_no_others() -> None:
    assert rows(Crow) == [
        ("name", "the-name", False, True),
        ("size", "the-size", True, False),
        ("nest", "nest", True, True),
        ("age", "age", True, False),
    ]


def test_named_tuple_and_typed_dict_say_which_fields_may_be_absent() -> None:
    assert [(name, optional) for name, _, optional, _ in rows(Point)] == [("x", False), ("y", True)]
    assert [(name, optional) for name, _, optional, _ in rows(Config)] == [("host", False), ("port", True)]


def test_field_of_a_generic_class_has_what_the_class_is_subscripted_with() -> None:
    asked: list[Any] = []

    def codec(annotation: Any) -> Any:
        asked.append(annotation)
        return Registry()._book.codec(annotation)

    fields_of(Page, (int,), AS_MAP, codec, {})
    fields_of(Page, (), AS_MAP, codec, {})
    assert asked == [list[int], list[Any]]


def test_keys_are_made_of_names_where_the_declaration_says_how() -> None:
    assert [key for _, key, *_ in rows(Crow, rename=str.upper)] == ["the-name", "the-size", "NEST", "AGE"]


@pytest.mark.parametrize(
    ("cls", "struct"),
    [(Bird, True), (Point, True), (Config, True), (Error, False), (int, False), (dict, False)],
)
def test_struct_is_what_has_fields_and_is_no_composite_of_the_standard(cls: type[Any], struct: bool) -> None:
    assert is_struct(cls) is struct


@dataclass
class TwoRests:
    one: Annotated[dict[str, Any], REST]
    two: Annotated[dict[str, Any], REST]


@dataclass
class NoDict:
    rest: Annotated[list[str], REST]


@dataclass
class OneKey:
    one: Annotated[int, Key("two")]
    two: int


@dataclass
class Bare:
    given: InitVar[int]


@pytest.mark.parametrize(
    ("cls", "options", "text"),
    [
        (TwoRests, {}, "only one field of a map can be marked REST"),
        (NoDict, {}, "make it a dict"),
        (OneKey, {}, "two fields with one key"),
        (Bare, {}, "give it a default"),
        (Bird, {"encoding": "value"}, "has 3 fields: encoding='value' is for one field"),
        (Config, {"encoding": "list"}, "can be sent only as a map"),
    ],
)
def test_class_that_cannot_be_sent_is_a_type_error(
    cls: type[Any], options: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        rows(cls, **options)
