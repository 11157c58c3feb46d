"""Codecs of unions: ``Order | Refund | None``, decided by the value itself.

Descriptors decide between described types, types between scalars. A union never tries one member after
another through nested values, because a hostile value could make that exponential in its depth. So one union
can have only one list and one map without a descriptor.

Knows the attributes of codecs, and no annotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.wire.composite_plan import descriptor_key
from trio_amqp10.amqp10.wire.values import Described

from .codec import EXACT, PLAIN, Codec, Misfit, wrong, wrong_object

if TYPE_CHECKING:
    from collections.abc import Callable


def optional(inner: Codec) -> Codec:
    """Return the codec of a type or null."""
    if inner.nullable:
        return inner
    read_inner, write_inner = inner.read, inner.write

    def read(value: Any) -> Any:
        return None if value is None else read_inner(value)

    def write(obj: Any) -> Any:
        return None if obj is None else write_inner(obj)

    kinds = None if inner.kinds is None else inner.kinds | {type(None)}

    takes_inner = inner.takes

    def takes(obj: Any) -> bool:
        return obj is None or (takes_inner is not None and takes_inner(obj))

    return Codec(
        f"{inner.expects} or null",
        read,
        write,
        kinds,
        takes=None if inner.leaf else takes,
        keys=inner.keys,
        nullable=True,
        rank=inner.rank,
    )


def union_of(members: list[Codec], subclass: Callable[[Any], Codec | None]) -> Codec:
    """Return the codec of one of several types, none of which is null.

    Args:
        members: the codecs of the types.
        subclass: returns the codec of another descriptor, if its class is a subclass of a member.

    Raises:
        TypeError: a value could belong to two of them.
    """
    anything = next((codec for codec in members if codec.kinds is None), None)
    if anything is not None:
        return anything
    expects = _listed([codec.expects for codec in members])
    by_rank = sorted(members, key=lambda codec: codec.rank)
    holders = [(codec, codec.takes) for codec in by_rank if codec.takes is not None]
    leaves = [codec for codec in by_rank if codec.leaf]
    by_key, by_kind = _tables(members)
    any_described = next((codec for codec in members if _takes_any_described(codec)), None)

    def read(value: Any) -> Any:
        if value.__class__ is Described:
            key = descriptor_key(value.descriptor)
            codec = by_key.get(key) or subclass(key) or any_described
            if codec is None:
                raise wrong(expects, value)
            return codec.read(value)
        candidates = by_kind.get(value.__class__, leaves)
        return candidates[0].read(value) if len(candidates) == 1 else _first(candidates, value)

    def _first(candidates: list[Codec], value: Any) -> Any:
        for codec in candidates:
            try:
                return codec.read(value)
            except Misfit:  # only scalars have several candidates, so no work is repeated
                continue
        raise wrong(expects, value)

    def write(obj: Any) -> Any:
        for codec, takes_it in holders:
            if takes_it(obj):
                return codec.write(obj)
        for same_class in (True, False):  # 5 for float | int is an int, though the codec of float accepts it
            for codec in leaves:
                if same_class and codec.rank == PLAIN and not _reads(codec, obj):
                    continue
                try:
                    return codec.write(obj)
                except Misfit:
                    continue
        raise wrong_object(expects, obj)

    kinds = frozenset(kind for codec in members for kind in codec.kinds or ())
    keys = frozenset[Any]() if any_described else frozenset(by_key)
    nullable = any(codec.nullable for codec in members)

    def takes(obj: Any) -> bool:
        return any(takes_it(obj) for _, takes_it in holders) or any(_writes(codec, obj) for codec in leaves)

    return Codec(expects, read, write, kinds, takes=takes if holders else None, keys=keys, nullable=nullable)


def _listed(names: list[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} or {last}" if most else last


def _takes_any_described(codec: Codec) -> bool:
    return Described in (codec.kinds or ()) and not codec.keys


def _reads(codec: Codec, obj: Any) -> bool:
    return obj.__class__ in (codec.kinds or ())


def _writes(leaf: Codec, obj: Any) -> bool:
    try:
        leaf.write(obj)
    except Misfit:
        return False
    return True


def _tables(members: list[Codec]) -> tuple[dict[Any, Codec], dict[type, list[Codec]]]:
    """Return the member of each descriptor, and the members for each class of values.

    The closest member comes first.
    """
    by_key: dict[Any, Codec] = {}
    by_kind: dict[type, list[Codec]] = {}
    for codec in members:
        for key in codec.keys:
            if by_key.setdefault(key, codec) is not codec:
                raise TypeError(f"{codec.expects} and {by_key[key].expects} have the same descriptor")
        for kind in (codec.kinds or frozenset()) - {Described}:
            by_kind.setdefault(kind, []).append(codec)
    for codecs in by_kind.values():
        codecs.sort(key=lambda codec: codec.rank)
        if len(codecs) > 1 and not all(codec.leaf for codec in codecs):
            both = " and ".join(codec.expects for codec in codecs)
            raise TypeError(
                f"{both} cannot be distinguished by a value: make them described types, or one type"
            )
    return by_key, by_kind


def base_codec(
    cls: type[Any], subclass: Callable[[Any], Codec | None], object_codec: Callable[[type[Any]], Codec | None]
) -> Codec:
    """Return the codec of an abstract class, for its described subclasses.

    Subclasses that are declared later are included.

    Args:
        cls: the class.
        subclass: returns the codec of a descriptor, if its class is a subclass.
        object_codec: returns the codec of a class with fields, or None.
    """

    def read(value: Any) -> Any:
        codec = subclass(descriptor_key(value.descriptor)) if value.__class__ is Described else None
        if codec is None:
            raise wrong(cls.__name__, value)
        return codec.read(value)

    def write(obj: Any) -> Any:
        codec = object_codec(obj.__class__) if isinstance(obj, cls) else None
        if codec is None or Described not in (codec.kinds or ()):
            raise wrong_object(f"a described type that is a {cls.__name__}", obj)
        return codec.write(obj)

    def takes(obj: Any) -> bool:
        return isinstance(obj, cls)

    return Codec(cls.__name__, read, write, frozenset({Described}), takes=takes, rank=EXACT)
