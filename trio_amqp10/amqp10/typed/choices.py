"""Codecs of closed choices: the members of an Enum, and literal values.

Their values are encoded by other codecs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .codec import CLOSED, Codec, Misfit, wrong, wrong_object

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping


def enum_codec(cls: type[enum.Enum], values: Codec) -> Codec:
    """Return the codec of an Enum, which encodes the value of a member.

    The combinations of a Flag are values too.
    """
    read_value, write_value = values.read, values.write

    def read(value: Any) -> Any:
        plain = read_value(value)
        try:
            return cls(plain)
        except ValueError:
            raise wrong(f"one of {cls.__name__}", value) from None

    def write(obj: Any) -> Any:
        if isinstance(obj, cls):
            return write_value(obj.value)
        raise wrong_object(cls.__name__, obj)

    return Codec(cls.__name__, read, write, values.kinds, rank=CLOSED, wire=values.wire)


def literal_codec(values: tuple[Any, ...], codecs: Mapping[type, Codec]) -> Codec:
    """Return the codec of literal values: ``Literal["a", 1]``.

    Args:
        values: the possible values.
        codecs: the codecs of the values, by class.
    """
    expects = "one of " + ", ".join(map(repr, values))
    found = {(value.__class__, value): value for value in values}
    kinds = frozenset(kind for codec in codecs.values() for kind in codec.kinds or ())

    def read(value: Any) -> Any:
        for cls, codec in codecs.items():
            try:
                plain = codec.read(value)
            except Misfit:
                continue
            if (cls, plain) in found:
                return found[cls, plain]
        raise wrong(expects, value)

    def write(obj: Any) -> Any:
        for cls, codec in codecs.items():
            if isinstance(obj, cls) and (cls is bool) is (obj.__class__ is bool) and (cls, obj) in found:
                return codec.write(found[cls, obj])
        raise wrong_object(expects, obj)

    wires = {codec.wire for codec in codecs.values()}
    wire = wires.pop() if len(wires) == 1 else ""
    return Codec(expects, read, write, kinds, nullable=None in values, rank=CLOSED, wire=wire)
