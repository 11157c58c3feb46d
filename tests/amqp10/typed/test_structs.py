"""Dataclasses, NamedTuples and TypedDicts as lists, maps and single values."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - annotations are read at run time
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import pytest

from trio_amqp10.amqp10.wire.fields import Multiple, symbol, uint, ulong  # noqa: TC001 - annotations are read at run time
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Described, Symbol, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.typed import REST, Key, Registry

TYPES = Registry()
T = TypeVar("T")
B = TypeVar("B", bound=int)


@TYPES.composite("test:line:list", 0x1_0000_0002)
@dataclass
class Line:
    article: str
    count: uint = 1


@TYPES.composite("test:order:list", 0x1_0000_0001)
@dataclass
class Order:
    VERSION: ClassVar[int] = 1
    id: ulong
    lines: list[Line] = field(default_factory=list)
    note: str | None = None
    limit: int | None = 5
    _: KW_ONLY
    names: Multiple[symbol] = ()


@TYPES.composite("test:special:list")
@dataclass(frozen=True, slots=True)
class Sparse:
    first: int | None
    second: Any = None
    third: str = "x"


@TYPES.composite("test:tree:map", 0x1_0000_0003, encoding="map", keys="symbol")
@dataclass
class Tree:
    name: Annotated[str, Key("the-name")]
    left: Tree | None = None
    size: int = field(default=0, metadata={"amqp": "the-size"})
    depth: int | None = 3
    others: Annotated[dict[str, Any], REST] = field(default_factory=dict)


@TYPES.composite("test:celsius:double", 0x1_0000_0004, encoding="value")
@dataclass
class Celsius:
    degrees: float

    def __post_init__(self) -> None:
        if self.degrees < -273.15:
            raise ValueError("below absolute zero")


class Point(NamedTuple):
    x: int
    y: int = 0
    label: str | None = None


@dataclass
class Person:
    name: str
    age: int | None
    seen: int = field(default=0, init=False)
    skipped: InitVar[int] = 0


@dataclass
class Employee(Person):
    boss: Employee | None = None
    firm: Final[str] = "own"  # type: ignore[misc]


class Config(TypedDict):
    host: str
    port: NotRequired[Annotated[uint, Key("the-port")]]
    user: str | None


class Loose(Config, total=False):
    path: Required[str]
    query: str | None


@dataclass
class Page(Generic[T]):
    items: list[T]
    best: T | None = None
    total: int = 0


@dataclass
class Numbers(Page[B], Generic[B]):
    unit: str = ""


@dataclass
class Orders(Numbers[int]):
    pass


class Row(TypedDict, Generic[T]):
    cell: T


LINE = Described(0x1_0000_0002, ["a", UInt(1)])


@pytest.mark.parametrize(
    ("obj", "value"),
    [
        (Line("a"), LINE),
        (Order(5), Described(0x1_0000_0001, [ULong(5), [], None, 5, None])),
        (
            Order(5, [Line("a")], "n", None, names=("x",)),
            Described(0x1_0000_0001, [ULong(5), [LINE], "n", None, Symbol("x")]),
        ),
        (Sparse(None, None, "y"), Described("test:special:list", [None, None, "y"])),
        (Sparse(1), Described("test:special:list", [1, None, "x"])),
        (Tree("a"), Described(0x1_0000_0003, {"the-name": "a", "the-size": 0, "depth": 3})),
        (
            Tree("a", Tree("b", size=1), depth=None, others={"x": Line("a")}),
            Described(
                0x1_0000_0003,
                {
                    "the-name": "a",
                    "left": Described(0x1_0000_0003, {"the-name": "b", "the-size": 1, "depth": 3}),
                    "the-size": 0,
                    "depth": None,
                    "x": LINE,
                },
            ),
        ),
        (Celsius(20.5), Described(0x1_0000_0004, 20.5)),
        (Point(1), [1, 0]),
        (Point(1, 2, "a"), [1, 2, "a"]),
        (Person("a", None), {"name": "a"}),
        (Employee("a", 5, Employee("b", 6)), None),
        (Orders([1], 2), {"items": [1], "best": 2, "total": 0, "unit": ""}),
    ],
)
def test_object_is_sent_as_declared_and_comes_back(obj: Any, value: Any) -> None:
    sent = TYPES.to_value(obj)
    if value is not None:
        assert (sent.__class__, sent) == (value.__class__, value)
    assert TYPES.from_value(type(obj), sent) == obj


def test_trailing_none_of_a_list_is_left_out_only_where_its_absence_reads_as_none() -> None:
    @dataclass
    class Row:
        a: int | None
        b: int | None = None
        c: int | None = 5

    types = Registry()
    types.composite("test:row:list")(Row)
    assert types.to_value(Row(None, c=None)).value == [None, None, None]
    assert types.from_value(Row, Described("test:row:list", [])) == Row(None, None, 5)
    assert types.from_value(Row, Described("test:row:list", [None, None, None])) == Row(None, None, None)


@dataclass
class Kept:
    name: str
    others: Annotated[Mapping[Any, Any], REST]


def test_rest_of_a_map_may_have_keys_that_no_dict_can_hold() -> None:
    types = Registry()
    types.composite("test:kept:map", encoding="map")(Kept)
    rest = PairMap([(1, 1), (True, 2), ([1], 3), (Symbol("name"), 4)])
    value = Described("test:kept:map", PairMap([*rest.items(), ("name", "a")]))
    read = types.from_value(Kept, value)
    assert read == Kept("a", rest)
    del rest["name"]
    pairs = types.to_value(Kept("a", rest)).value
    assert pairs == PairMap([("name", "a"), *rest.items()])
    plain = types.from_value(Kept, Described("test:kept:map", PairMap([("name", "a"), (1, 1)])))
    assert plain == Kept("a", {1: 1})
    assert plain.others.__class__ is dict


def test_keys_of_a_map_are_of_the_declared_type() -> None:
    keys = list(TYPES.to_value(Tree("a", others={"x": 1})).value)
    assert [key.__class__ for key in keys] == [Symbol, Symbol, Symbol, str]
    assert {key.__class__ for key in TYPES.to_value(Person("a", 1))} == {str}
    assert TYPES.from_value(Person, {Symbol("name"): "a"}) == Person("a", None)


def test_null_and_nothing_read_as_the_default() -> None:
    assert TYPES.from_value(Order, Described("test:order:list", [ULong(5), None])) == Order(5)
    assert TYPES.from_value(Person, {"name": "a", "age": None, "seen": 9}) == Person("a", None)
    assert TYPES.from_value(Tree, Described("test:tree:map", {"the-name": "a", "the-size": None})) == Tree(
        "a"
    )


@pytest.mark.parametrize("unknown", ["ignore", "refuse"])
def test_what_is_no_field_is_ignored_or_refused(unknown: Any) -> None:
    types = Registry(unknown=unknown)
    types.composite("test:two:list")(dataclass(type("Two", (), {"__annotations__": {"a": int}})))
    two = types.lookup("test:two:list")
    assert two is not None
    for cls, value, text in (
        (two, Described("test:two:list", [1, 2]), "Two: expected 1 fields, got 2"),
        (Person, {"name": "a", "x": 1}, "Person: has no field 'x'"),
    ):
        if unknown == "ignore":
            types.from_value(cls, value)
        else:
            with pytest.raises(RemoteProtocolError, match=text):
                types.from_value(cls, value)
    assert types.from_value(Person, {"name": "a"}) == Person("a", None)


def test_keys_are_made_of_names_when_the_registry_or_the_class_says_how() -> None:
    types = Registry(rename=str.upper, keys="symbol")

    @types.mapping(rename=str.title, keys="string")
    @dataclass
    class Titled:
        a_name: str

    @dataclass
    class Other:
        a_name: str

    assert types.to_value(Titled("x")) == {"A_Name": "x"}
    assert types.to_value(Other("x")) == {"A_NAME": "x"}
    assert types.from_value(Other, {"A_NAME": "x"}) == Other("x")
    with pytest.raises(RemoteProtocolError, match=r"Other\.A_NAME: expected string, and it is missing"):
        types.from_value(Other, {"a_name": "x"})


def test_named_tuple_is_a_map_when_it_is_declared_as_one() -> None:
    types = Registry()

    @types.mapping()
    class Size(NamedTuple):
        width: int
        height: int = 1

    assert types.to_value(Size(2)) == {"width": 2, "height": 1}
    assert types.from_value(Size, {"width": 2}) == Size(2)


# TypedDict -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "obj", "value"),
    [
        (Config, {"host": "a", "user": None}, {"host": "a", "user": None}),
        (
            Config,
            {"host": "a", "port": 5, "user": "b"},
            {"host": "a", "the-port": UInt(5), "user": "b"},
        ),
        (Loose, {"host": "a", "user": "b", "path": "/", "query": None}, None),
        (Row[int], {"cell": 5}, {"cell": 5}),
        (list[Config], [{"host": "a", "user": "b"}], [{"host": "a", "user": "b"}]),
    ],
)
def test_typed_dict_is_a_map_and_comes_back(cls: Any, obj: Any, value: Any) -> None:
    sent = TYPES.to_value(obj, cls)
    assert sent == (obj if value is None else value)
    assert TYPES.from_value(cls, sent) == obj


def test_typed_dict_reads_a_missing_key_as_none_when_it_may_be_none() -> None:
    assert TYPES.from_value(Config, {"host": "a"}) == {"host": "a", "user": None}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"host": "a"}, "Config: has no key 'user'"),
        ({"host": "a", "user": None, "x": 1}, "Config: has a key that its TypedDict does not have: 'x'"),
        ({"host": 1, "user": None}, "Config.host: expected str, got int 1"),
        (5, "Config: expected Config, got int 5"),
    ],
)
def test_typed_dict_refuses_what_it_is_not(obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj, Config)
    assert text in str(caught.value)


def test_typed_dict_can_be_a_described_type() -> None:
    types = Registry(TYPES)
    declared: Any = types.composite("test:config:map", encoding="map")(Config)
    value = types.to_value({"host": "a", "user": "b"}, declared)
    assert value == Described("test:config:map", {"host": "a", "user": "b"})
    assert types.from_value(object, value) == {"host": "a", "user": "b"}
    assert types.to_value({"host": "a", "user": "b"}, Line | declared) == value
    with pytest.raises(RemoteProtocolError, match="expected Config"):
        types.from_value(declared, Described("other", {}))


# Generic classes and inheritance ------------------------------------------------------------------------


def test_generic_class_takes_what_it_is_subscripted_with() -> None:
    page = Page([Line("a")], Line("b"))
    value = TYPES.to_value(page, Page[Line])
    assert value == {"items": [LINE], "best": Described(0x1_0000_0002, ["b", UInt(1)]), "total": 0}
    assert TYPES.from_value(Page[Line], value) == page
    assert TYPES.from_value(Page, value) == page
    with pytest.raises(RemoteProtocolError, match=r"value\.items\[0\]: expected an integer"):
        TYPES.from_value(Page[int], value)
    with pytest.raises(RemoteProtocolError, match=r"Orders\.items\[0\]: expected an integer"):
        TYPES.from_value(Orders, value)
    with pytest.raises(RemoteProtocolError, match=r"Numbers\.items\[0\]: expected an integer"):
        TYPES.from_value(Numbers, value)


def test_object_is_written_as_its_own_class_says() -> None:
    @dataclass
    class Long(Line):
        length: int = 0

    types = Registry(TYPES)
    value = types.to_value([Long("a", length=3)], list[Line])
    assert value == [Described(0x1_0000_0002, ["a", UInt(1), 3])]
    assert types.from_value(list[Line], value) == [Line("a")]
    assert types.from_value(list[Long], value) == [Long("a", 1, 3)]
    assert types.to_value([Employee("a", 1)], list[Person])[0].keys() == {"name", "age", "firm"}


def test_bare_class_takes_a_subclass_that_is_described() -> None:
    types = Registry()

    @types.composite("test:manager:map", encoding="map")
    @dataclass
    class Manager(Person):
        staff: int = 0

    team = [Person("a", 1), Manager("b", 2, staff=3)]
    value = types.to_value(team, list[Person])
    assert value == [
        {"name": "a", "age": 1},
        Described("test:manager:map", {"name": "b", "age": 2, "staff": 3}),
    ]
    assert types.from_value(list[Person], value) == team


# Faults ------------------------------------------------------------------------------------------------


def order(*fields: Any) -> Described:
    return Described("test:order:list", list(fields))


@pytest.mark.parametrize(
    ("cls", "value", "text"),
    [
        (Order, 5, "Order: expected Order, got long 5"),
        (Order, Described("x", []), "Order: expected Order, got a value described by Symbol('x')"),
        (Order, Described("test:order:list", {}), "Order: expected the list of Order, got a map"),
        (Order, order(), "Order.id: expected ulong, and it is missing"),
        (Order, order(None), "Order.id: expected ulong, got null"),
        (Order, order(5), "Order.id: expected ulong, got long 5"),
        (
            Order,
            order(ULong(5), [LINE, LINE, Described("test:line:list", ["a", "x"])]),
            "Order.lines[2].count: expected uint, got string 'x'",
        ),
        (Tree, Described("test:tree:map", []), "Tree: expected the map of Tree, got a list"),
        (Tree, Described("test:tree:map", {}), "Tree.the-name: expected string, and it is missing"),
        (Tree, Described("test:tree:map", {"the-name": None}), "Tree.the-name: expected string, got null"),
        (
            Tree,
            Described("test:tree:map", {"the-name": "a", "left": Described("test:tree:map", {})}),
            "Tree.left.the-name: expected string, and it is missing",
        ),
        (Tree, Described("test:tree:map", {"the-name": "a", 1: 2}), "Tree[1]: expected string, got long 1"),
        (Celsius, Described("test:celsius:double", "x"), "Celsius.degrees: expected a floating-point"),
        (Celsius, Described("test:celsius:double", -300), "Celsius: not a Celsius: below absolute zero"),
        (Point, {}, "Point: expected the list of Point, got a map"),
        (Point, [], "Point.x: expected an integer, and it is missing"),
        (Person, [], "Person: expected the map of Person, got a list"),
        (Person, Described("x", {}), "Person: expected the map of Person, got a value described by"),
    ],
)
def test_value_that_does_not_fit_is_refused_with_its_path(cls: Any, value: Any, text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        TYPES.from_value(cls, value)
    assert text in caught.value.description
    assert (caught.value.condition, caught.value.scope) == ("amqp:invalid-field", "link")


@pytest.mark.parametrize(
    ("obj", "as_", "text"),
    [
        (Order("x"), None, "Order.id: expected ulong, got str 'x'"),  # type: ignore[arg-type]
        (Order(5, [Line("a"), Line("b", -1)]), None, "Order.lines[1].count: expected uint, which is 0 to"),
        (Order(5, [Line(None)]), None, "Order.lines[0].article: expected str, got None"),  # type: ignore[arg-type]
        (Tree(5), None, "Tree.name: expected str, got int 5"),  # type: ignore[arg-type]
        (Tree("a", others={"the-name": 1}), None, "Tree.others: the key 'the-name' is a field of its own"),
        (Tree("a", others={"x": object()}), None, "Tree.others['x']: AMQP has no type for a builtins.object"),
        (Tree("a", others=5), None, "Tree.others: expected a map, got int 5"),  # type: ignore[arg-type]
        (Line("a"), Celsius, "Celsius: expected Celsius, got Line"),
        (5, Order, "Order: expected Order, got int 5"),
    ],
)
def test_object_that_does_not_fit_is_refused_with_its_path(obj: Any, as_: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj, as_)
    assert text in str(caught.value)


def test_only_field_that_does_not_fit_is_refused_with_its_path() -> None:
    broken = Celsius(1)
    broken.degrees = "x"  # type: ignore[assignment]
    with pytest.raises(LocalProtocolError, match=r"Celsius\.degrees: expected float, got str 'x'"):
        TYPES.to_value(broken)


def test_opinion_of_the_class_is_the_cause_of_the_fault() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        TYPES.from_value(Celsius, Described("test:celsius:double", -300.0))
    assert isinstance(caught.value.__cause__, ValueError)


# Declarations that cannot be ----------------------------------------------------------------------------


def two_keys() -> Any:
    @dataclass
    class C:
        a: int
        b: Annotated[int, Key("a")]

    return C


def init_var() -> Any:
    @dataclass
    class C:
        a: InitVar[int]

    return C


def two_rests() -> Any:
    @dataclass
    class C:
        a: Annotated[dict[str, int], REST]
        b: Annotated[dict[str, int], REST]

    return C


def odd_rest() -> Any:
    @dataclass
    class C:
        a: Annotated[int, REST]

    return C


def rest_of_a_dict() -> Any:
    class C(TypedDict):
        a: Annotated[dict[str, int], REST]

    return C


def not_a_type() -> Any:
    @dataclass
    class C:
        a: complex

    return C


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (two_keys, "C has two fields with one key"),
        (init_var, "C.a is an InitVar without a default"),
        (two_rests, "only one field of a map can be marked REST"),
        (odd_rest, "C.a is marked REST: make it a dict"),
        (rest_of_a_dict, "and no key of a TypedDict"),
        (not_a_type, "complex has no AMQP type"),
    ],
)
def test_class_that_cannot_travel_is_a_type_error(make: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Registry().from_value(make(), {})


def test_declaration_that_cannot_be_changes_nothing() -> None:
    types = Registry()
    for cls, encoding, text in (
        (two_rests(), "list", "only one field of a map can be marked REST"),
        (two_keys(), "value", "C has 2 fields: encoding='value' is for one field"),
        (Config, "list", "Config is a TypedDict, which can be sent only as a map"),
        (int, "list", "int is not a dataclass, NamedTuple or TypedDict: put @dataclass below"),
    ):
        with pytest.raises(TypeError, match=text):
            types.composite("test:c:list", 5, encoding=encoding)(cls)  # type: ignore[arg-type]
    assert list(types) == []
    assert types.lookup(5) is None


def test_wide_class_has_all_its_fields() -> None:
    @dataclass
    class Empty:
        pass

    types = Registry()
    types.composite("test:empty:list")(Empty)
    assert types.to_value(Empty()) == Described("test:empty:list", [])
    assert types.from_value(Empty, Described("test:empty:list", [])) == Empty()
