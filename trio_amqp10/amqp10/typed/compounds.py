"""Codecs of lists, sets, maps, arrays and values of any type (1.6.22 to 1.6.24).

Each level adds its step to the path of an error from below. Knows no class with fields.
"""

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.pair_map import PairMap, simplest
from trio_amqp10.amqp10.wire.values import TYPE_NAMES, Array, Described, ZeroWidthArray
from trio_amqp10.core.errors import LocalProtocolError

from .codec import CLOSED, MAPS, Codec, Misfit, shown, wrong, wrong_object
from .scalars import PLAIN_CODECS

_LISTS: Final = frozenset({list, Array, ZeroWidthArray})
_TEXTS: Final = (str, bytes, bytearray, memoryview, Mapping)


def _is_list(obj: Any) -> bool:
    """Whether ``obj`` can be sent as a list.

    A collection, but not a text, octets or a mapping.
    """
    return isinstance(obj, Collection) and not isinstance(obj, _TEXTS)


def _is_mapping(obj: Any) -> bool:
    return isinstance(obj, Mapping)


def _is_row(obj: Any) -> bool:
    """Whether ``obj`` has an order of items that has a meaning."""
    return isinstance(obj, (list, tuple))


def _items(value: Any, expects: str) -> list[Any]:
    """Return the elements of a list, or of an array, which some peers send instead.

    An array whose elements have no octets is accepted only if it is empty: ten octets can claim four thousand
    million elements, and the decoder's budget has not counted them.
    """
    cls = value.__class__
    if cls is list:
        items: list[Any] = value
        return items
    if cls is Array:
        array: Array[Any] = value
        if not array.descriptors:
            return array
        return [_described(item, array.descriptors) for item in array]
    if cls is ZeroWidthArray and not len(value):
        return []
    raise wrong(expects, value)


def _described(item: Any, descriptors: tuple[Any, ...]) -> Any:
    """Return an element of an array, with the descriptors that all elements share."""
    for descriptor in reversed(descriptors):
        value = Described(None, item)
        value.descriptor = descriptor
        item = value
    return item


def _each(convert: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    done: list[Any] = []
    try:
        for item in items:
            done.append(convert(item))  # noqa: PERF401 - the length is the index of a fault
    except Misfit as misfit:
        misfit.path.append(f"[{len(done)}]")
        raise
    return done


def list_of(item: Codec, make: Callable[[list[Any]], Any] | None = None) -> Codec:
    """Return the codec of a list of one type.

    ``make`` makes the object of a list: a tuple, set, frozenset or deque; None for the list itself.
    """
    expects = f"a list of {item.expects}"
    read_item, write_item = item.read, item.write

    def read(value: Any) -> Any:
        items = _each(read_item, _items(value, expects))
        if make is None:
            return items
        try:
            return make(items)
        except TypeError:
            raise Misfit("an item of this set cannot be hashed") from None

    def write(obj: Any) -> Any:
        if not _is_list(obj):
            raise wrong_object(expects, obj)
        return _each(write_item, obj)

    return Codec(expects, read, write, _LISTS, takes=_is_list, wire="list")


def tuple_of(items: tuple[Codec, ...]) -> Codec:
    """Return the codec of a list of fixed length, with a type for each element.

    For example ``tuple[int, str]``.
    """
    expects = f"a list of {len(items)} elements"
    readers = [item.read for item in items]
    writers = [item.write for item in items]

    def convert(converters: list[Callable[[Any], Any]], values: Iterable[Any]) -> list[Any]:
        done: list[Any] = []
        try:
            for each, value in zip(converters, values, strict=True):
                done.append(each(value))
        except Misfit as misfit:
            misfit.path.append(f"[{len(done)}]")
            raise
        return done

    def read(value: Any) -> Any:
        values = _items(value, expects)
        if len(values) != len(items):
            raise Misfit(f"expected {expects}, got {len(values)}")
        return tuple(convert(readers, values))

    def write(obj: Any) -> Any:
        if not _is_row(obj):
            raise wrong_object(expects, obj)
        if len(obj) != len(items):
            raise Misfit(f"expected {expects}, got {len(obj)}")
        return convert(writers, obj)

    return Codec(expects, read, write, _LISTS, takes=_is_list, wire="list")


def map_of(
    key: Codec, item: Codec, make: Callable[[Any], Any] | None = None, *, every: bool = False
) -> Codec:
    """Return the codec of a map with one type of keys and one of values.

    ``make`` makes the object of a dict; None for the dict itself. ``every``: read a map that no dict can hold
    as a ``PairMap``; otherwise it is an error.
    """
    expects = "a map"

    def convert(pairs: Mapping[Any, Any], each_key: Callable[[Any], Any], each: Callable[[Any], Any]) -> Any:
        done: list[tuple[Any, Any]] = []
        name: Any = None
        try:
            for name, value in pairs.items():
                done.append((each_key(name), each(value)))
        except Misfit as misfit:
            misfit.path.append(f"[{shown(name)}]")
            raise
        try:
            return simplest(done)
        except LocalProtocolError:
            raise Misfit("two keys of this map become one") from None

    def read(value: Any) -> Any:
        if value.__class__ not in MAPS:
            raise wrong(expects, value)
        raw: Any = value  # a type checker would narrow `value` to an object
        pairs = convert(raw, key.read, item.read)
        if pairs.__class__ is PairMap and not every:
            raise Misfit(
                "two keys of this map become one in a dict, or cannot be hashed: read it as a PairMap"
            )
        return pairs if make is None else make(pairs)

    def write(obj: Any) -> Any:
        if not _is_mapping(obj):
            raise wrong_object(expects, obj)
        return convert(obj, key.write, item.write)

    return Codec(expects, read, write, MAPS, takes=_is_mapping, wire="map")


def array_of(item: Codec) -> Codec:
    """Return the codec of an array of one wire type: ``Array[ulong]`` (1.6.24)."""
    expects = f"an array of {item.wire}"

    def read(value: Any) -> Any:
        if value.__class__ is list or getattr(value, "descriptors", None):
            raise wrong(expects, value)
        return Array(_each(item.read, _items(value, expects)), item.wire)

    def write(obj: Any) -> Any:
        if not _is_row(obj):
            raise wrong_object(expects, obj)
        return Array(_each(item.write, obj), item.wire)

    return Codec(expects, read, write, frozenset({Array, ZeroWidthArray}), takes=_is_list, wire="array")


def multiple_of(item: Codec) -> Codec:
    """Return the codec of zero or more values of a type, read as a tuple (1.4).

    The value is null, one value, or an array.
    """
    expects = f"zero or more of {item.wire}"
    arrays = frozenset({Array, ZeroWidthArray})

    def read(value: Any) -> Any:
        if value is None:
            return ()
        if value.__class__ in arrays:
            return tuple(_each(item.read, _items(value, expects)))
        return (item.read(value),)

    def write(obj: Any) -> Any:
        if obj is None:
            return None
        if not _is_list(obj):
            raise wrong_object(expects, obj)
        values = _each(item.write, obj)
        if len(values) < 2:
            return values[0] if values else None
        return Array(values, item.wire)

    kinds = arrays | {type(None)} | (item.kinds or frozenset())
    return Codec(expects, read, write, kinds, takes=_is_list, nullable=True)


def adapted(
    cls: type[Any], wire: Codec, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any]
) -> Codec:
    """Return the codec of an adapted class, which two functions convert.

    A ValueError of either means that the value does not fit, and is the cause of the error.
    """

    def read(value: Any) -> Any:
        plain = wire.read(value)
        try:
            return from_wire(plain)
        except ValueError as error:
            raise Misfit(f"not a {cls.__name__}: {error}") from error

    def write(obj: Any) -> Any:
        if not isinstance(obj, cls):
            raise wrong_object(cls.__name__, obj)
        try:
            plain = to_wire(obj)
        except ValueError as error:
            raise Misfit(f"a {cls.__name__} that cannot be sent: {error}") from error
        return wire.write(plain)

    def takes(obj: Any) -> bool:
        return isinstance(obj, cls)

    return Codec(
        cls.__name__,
        read,
        write,
        wire.kinds,
        takes=None if wire.leaf else takes,
        keys=wire.keys,
        rank=CLOSED,
        wire=wire.wire,
    )


# Any ---------------------------------------------------------------------------------------------

_SCALARS: Final = frozenset(TYPE_NAMES) - {list, dict, Array}
_CONVERTED: Final = (bool, int, float, str, bytes, bytearray, memoryview, datetime.datetime, decimal.Decimal)
"""The base classes by which a value of any type is sent, the first that fits.

bool comes before int, which is its base.
"""


def any_codec(
    described: Callable[[Any], Codec | None], object_codec: Callable[[type[Any]], Codec | None]
) -> Codec:
    """Return the codec of a value of any type.

    A described value with a known descriptor is read as its class, all other values unchanged.

    Args:
        described: returns the codec of a descriptor, or None.
        object_codec: returns the codec of a class with fields, or None.
    """

    def read(value: Any) -> Any:
        cls = value.__class__
        if cls is Described:
            known = described(value.descriptor)
            return _described(read(value.value), (value.descriptor,)) if known is None else known.read(value)
        if cls is list:
            return lists.read(value)
        return maps.read(value) if cls in MAPS else value

    def write(obj: Any) -> Any:
        cls = obj.__class__
        if cls is Described:
            return _described(write(obj.value), (obj.descriptor,))
        known = object_codec(cls)
        if known is not None:
            return known.write(obj)
        if cls is Array or cls is ZeroWidthArray or obj is None:
            return obj
        if isinstance(obj, enum.Enum):
            return write(obj.value)
        if cls in _SCALARS and cls is not int and cls is not str:
            return obj
        if hasattr(cls, "__amqp_encode_at__") or hasattr(cls, "__amqp_encode__"):
            return _by_way_of_octets(obj)
        for base in _CONVERTED:
            if isinstance(obj, base):
                return PLAIN_CODECS[base].write(obj)
        if isinstance(obj, Mapping):
            return maps.write(obj)
        if _is_list(obj):
            return lists.write(obj)
        raise Misfit(f"AMQP has no type for a {cls.__module__}.{cls.__qualname__}")

    codec = Codec("any value", read, write, None, takes=lambda _obj: True, nullable=True)
    lists = list_of(codec)
    maps = map_of(codec, codec, every=True)
    return codec


def _by_way_of_octets(obj: Any) -> Any:
    """Return the value of an object that encodes itself, such as a composite."""
    try:
        return decode(encode(obj))[0]
    except LocalProtocolError as error:
        raise Misfit(str(error)) from None
