"""Codecs of dataclasses, NamedTuples and TypedDicts (1.4).

They are encoded as lists, maps or single values.

Null and a missing field are read by the same rule: as None if the annotation has None, otherwise as the
default, otherwise it is an error. A missing field is read as its default first, which differs only for ``int
| None = 5``. So an object arrives as it was sent: trailing None in a list, and None in a map, are left out
only if their absence is read as None.

Knows no annotation and no registry: ``codec_builder`` finds the fields, and sets them after the codec is
made, because a field may have its class.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from trio_amqp10.amqp10.wire.composite_plan import descriptor_key
from trio_amqp10.amqp10.wire.pair_map import copied, simplest
from trio_amqp10.amqp10.wire.values import Described, Symbol, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .codec import CLOSED, MAPS, Codec, Misfit, shown, wrong, wrong_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Encoding = Literal["list", "map", "value"]
Keys = Literal["string", "symbol"]
Unknown = Literal["ignore", "refuse"]


class Declaration(NamedTuple):
    """The encoding of a class.

    Attributes:
        name: the symbolic descriptor, or None for a class that is not described.
        code: the numeric descriptor; without it the symbolic one is sent.
        encoding: the kind of the value with the fields.
        keys: the type of the keys of a map.
        rename: returns the key of a field by its name, if the field has no key of its own.
        unknown: whether to ignore or refuse keys and elements without a field.
    """

    name: Symbol | None
    code: ULong | None
    encoding: Encoding
    keys: Keys
    rename: Callable[[str], str] | None
    unknown: Unknown

    @property
    def descriptors(self) -> frozenset[Any]:
        """The descriptors that a peer may send."""
        return frozenset(each for each in (self.name, self.code) if each is not None)


class Field(NamedTuple):
    """One field of a class.

    Attributes:
        name: its name in Python.
        key: its key in a map.
        codec: its codec.
        optional: whether it may be missing, because it has a default or is a key that is not required.
        omit_none: whether None need not be sent, because its absence is read as None.
        rest: whether it holds the keys of a map that are not other fields.
    """

    name: str
    key: str
    codec: Codec
    optional: bool
    omit_none: bool
    rest: bool = False


class _Absent:
    """The value of a key that a TypedDict does not have."""


_ABSENT: Final = _Absent()


class Struct(Codec):
    """The codec of one class with fields."""

    __slots__ = (
        "_cls",
        "_declaration",
        "_fields",
        "_get",
        "_is_dict",
        "_known",
        "_make",
        "_other",
        "_readers",
        "_rest",
        "_subclass",
        "_writers",
    )

    def __init__(
        self,
        cls: type[Any],
        declaration: Declaration,
        *,
        is_dict: bool,
        other: Callable[[type[Any]], Codec],
        subclass: Callable[[Any], Codec | None],
    ) -> None:
        """Make the codec; it must not be used before ``fill``.

        Args:
            cls: the class.
            declaration: the encoding of the class.
            is_dict: whether it is a TypedDict, whose objects are dicts.
            other: returns the codec of a subclass, because an object is written by its own class.
            subclass: returns the codec of a descriptor, if its class is a subclass.
        """
        self._cls: type[Any] = dict if is_dict else cls
        self._make: Callable[..., Any] = self._cls
        self._is_dict = is_dict
        self._declaration = declaration
        self._other = other
        self._subclass = subclass
        self._fields: list[Field] = []
        self._rest: Field | None = None
        read, write = {
            "list": (self._read_list, self._write_list),
            "map": (self._read_map, self._write_map),
            "value": (self._read_single, self._write_single),
        }[declaration.encoding]
        described = declaration.name is not None
        bare = frozenset({list}) if declaration.encoding == "list" else MAPS
        super().__init__(
            cls.__name__,
            self._described_reader(read) if described else self._bare_reader(read),
            self._writer(write),
            frozenset({Described}) if described else bare,
            takes=self._is_ours,
            keys=declaration.descriptors,
            rank=CLOSED,
        )

    def fill(self, fields: Iterable[Field]) -> None:
        """Set the fields, in the order of a list."""
        every = list(fields)
        self._fields = rows = [field for field in every if not field.rest]
        self._rest = next((field for field in every if field.rest), None)
        self._known = frozenset(field.key for field in rows)
        symbols = self._declaration.keys == "symbol"
        self._readers = [
            (field.name, field.key, field.codec.read, field.codec.nullable, field.optional) for field in rows
        ]
        self._writers = [
            (
                field.name,
                Symbol(field.key) if symbols else field.key,
                field.codec.write,
                field.codec.nullable and field.omit_none,
            )
            for field in rows
        ]
        names = [field.name for field in rows]
        self._get = _dict_getter(rows) if self._is_dict else _getter(names)

    def _is_ours(self, obj: Any) -> bool:
        return isinstance(obj, self._cls)

    def _described_reader(self, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a reader of described values: of this class, or of a subclass."""
        descriptors = self._declaration.descriptors

        def read_described(value: Any) -> Any:
            if value.__class__ is Described:
                key = descriptor_key(value.descriptor)
                if key in descriptors:
                    return read(value.value)
                codec = self._subclass(key)
                if codec is not None:
                    return codec.read(value)
            raise wrong(self.expects, value)

        return read_described

    def _bare_reader(self, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a reader of values without descriptor, or of a described subclass."""

        def read_bare(value: Any) -> Any:
            if value.__class__ is Described:
                codec = self._subclass(descriptor_key(value.descriptor))
                if codec is not None:
                    return codec.read(value)
            return read(value)

        return read_bare

    def _writer(self, write: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a writer of objects of this class, or of a subclass by its own codec."""
        cls, is_dict = self._cls, self._is_dict
        name, code = self._declaration.name, self._declaration.code
        descriptor = name if code is None else code

        def write_object(obj: Any) -> Any:
            if obj.__class__ is not cls and not (is_dict and isinstance(obj, dict)):
                if not isinstance(obj, cls):
                    raise wrong_object(self.expects, obj)
                return self._other(obj.__class__).write(obj)
            return write(obj) if descriptor is None else Described(descriptor, write(obj))

        return write_object

    def _made(self, found: dict[str, Any]) -> Any:
        try:
            return self._make(**found)
        except (ValueError, LocalProtocolError) as error:  # the class itself checks its fields
            raise Misfit(f"not a {self.expects}: {error}") from error

    def _expected(self, name: str) -> str:
        return next(field.codec.expects for field in self._fields if field.name == name)

    # -- lists

    def _read_list(self, value: Any) -> Any:
        if value.__class__ is not list:
            raise wrong(f"the list of {self.expects}", value)
        found: dict[str, Any] = {}
        name = ""
        readers = self._readers
        try:
            for (name, _, read, nullable, optional), item in zip(readers, value, strict=False):
                if item is not None:
                    found[name] = read(item)
                elif nullable:
                    found[name] = read(None)
                elif not optional:
                    raise Misfit(f"expected {self._expected(name)}, got null")
            for name, _, read, nullable, optional in readers[len(value) :]:
                if nullable and not optional:
                    found[name] = read(None)
                elif not optional:
                    raise Misfit(f"expected {self._expected(name)}, and it is missing")
        except Misfit as misfit:
            misfit.path.append(f".{name}")
            raise
        if len(value) > len(readers) and self._declaration.unknown == "refuse":
            raise Misfit(f"expected {len(readers)} fields, got {len(value)}")
        return self._made(found)

    def _write_list(self, obj: Any) -> list[Any]:
        items: list[Any] = []
        count = 0
        name = ""
        values = self._get(obj)
        try:
            for (name, _, write, omit_none), item in zip(self._writers, values, strict=True):  # noqa: B007 - for a fault
                if item is None and omit_none:
                    items.append(None)
                else:
                    items.append(write(item))
                    count = len(items)
        except Misfit as misfit:
            misfit.path.append(f".{name}")
            raise
        del items[count:]
        return items

    # -- maps

    def _read_map(self, value: Any) -> Any:
        raw: Any = value  # a type checker would narrow `value` to an object
        if value.__class__ not in MAPS:
            raise wrong(f"the map of {self.expects}", value)
        pairs: Mapping[Any, Any] = raw
        found: dict[str, Any] = {}
        key = ""
        try:
            for name, key, read, nullable, optional in self._readers:
                item = pairs.get(key)
                if item is not None:
                    found[name] = read(item)
                elif nullable and (not optional or key in pairs):
                    found[name] = read(None)
                elif not optional:
                    what = "got null" if key in pairs else "and it is missing"
                    raise Misfit(f"expected {self._expected(name)}, {what}")
        except Misfit as misfit:
            misfit.path.append(f".{key}")
            raise
        if self._rest is not None or self._declaration.unknown == "refuse":
            self._read_rest(pairs, found)
        return self._made(found)

    def _read_rest(self, pairs: Mapping[Any, Any], found: dict[str, Any]) -> None:
        """Read the keys without a field into the field for them, or refuse them."""
        rest = copied(pairs)
        for key in self._known:
            rest.pop(key, None)
        if self._rest is not None:
            found[self._rest.name] = self._rest.codec.read(simplest(rest.items()))
        elif rest:
            raise Misfit(f"has no field {shown(next(iter(rest)))}")

    def _write_map(self, obj: Any) -> Mapping[Any, Any]:
        pairs: dict[Any, Any] = {}
        name = ""
        values = self._get(obj)
        try:
            for (name, key, write, omit_none), item in zip(self._writers, values, strict=True):  # noqa: B007 - as above
                if item is not _ABSENT and not (item is None and omit_none):
                    pairs[key] = write(item)
            if self._rest is not None:
                name = self._rest.name
                return self._with_rest(pairs, self._rest.codec.write(getattr(obj, name)))
        except Misfit as misfit:
            misfit.path.append(f".{name}")
            raise
        return pairs

    def _with_rest(self, pairs: dict[Any, Any], rest: Mapping[Any, Any]) -> Mapping[Any, Any]:
        for key in self._known:
            if key in rest:
                raise Misfit(f"the key {key!r} is a field of its own")
        every: Mapping[Any, Any] = simplest([*pairs.items(), *rest.items()])
        return every

    # -- the value of the only field

    def _read_single(self, value: Any) -> Any:
        (field,) = self._fields
        try:
            item = field.codec.read(value)
        except Misfit as misfit:
            misfit.path.append(f".{field.name}")
            raise
        return self._made({field.name: item})

    def _write_single(self, obj: Any) -> Any:
        (field,) = self._fields
        try:
            return field.codec.write(getattr(obj, field.name))
        except Misfit as misfit:
            misfit.path.append(f".{field.name}")
            raise


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the named attributes of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda obj: tuple(getattr(obj, name) for name in names)


def _dict_getter(fields: list[Field]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads the values of a TypedDict, in the order of fields."""
    required = {field.name for field in fields if not field.optional}
    names = {field.name for field in fields}

    def get(obj: Any) -> tuple[Any, ...]:
        for name in required:
            if name not in obj:
                raise Misfit(f"has no key {name!r}")
        for key in obj:
            if key not in names:
                raise Misfit(f"has a key that its TypedDict does not have: {shown(key)}")
        return tuple(obj.get(field.name, _ABSENT) for field in fields)

    return get
