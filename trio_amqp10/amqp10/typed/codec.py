"""The common parts of the typed codec: ``Codec``, and the error of a wrong value.

Knows no annotation, and of AMQP only the names of types for errors. ``codec_builder`` makes codecs of
annotations; ``scalars``, ``compounds``, ``unions`` and ``structs`` define the codecs of each kind.
"""

from __future__ import annotations

from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import TYPE_NAMES, Array, Described, ZeroWidthArray

if TYPE_CHECKING:
    from collections.abc import Callable

CLOSED: Final = 0
EXACT: Final = 1
PLAIN: Final = 2
"""Ranks for a union with several members that could accept a value.

A closed choice comes first, then an exact type of the wire, then a class of Python, which accepts several
types.
"""


class Misfit(Exception):  # noqa: N818 - never leaves the package
    """A value or object does not match its annotation.

    Attributes:
        detail: the expected type, and the value.
        path: the steps to the value, innermost first: each level adds its step while the exception passes.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail: Final = detail
        self.path: Final[list[str]] = []

    def text(self, root: str) -> str:
        """Return the error as text, with its path from ``root`` on."""
        return f"{root}{''.join(reversed(self.path))}: {self.detail}"


class Codec:
    """The codec of one annotation.

    Attributes:
        expects: a description of the type, for errors.
        read: make an object of a value; may raise Misfit.
        write: make a value of an object; may raise Misfit.
        kinds: the classes of values that it reads; None for any.
        takes: whether it writes an object, decided by the object's class; None for a leaf.
        keys: the descriptors that it reads, if ``kinds`` has Described; empty for any.
        nullable: whether it reads null.
        leaf: whether it holds no other values, so that trying it costs little.
        rank: see ``CLOSED``.
        wire: the standard's name of the only type that it writes, or "".
    """

    __slots__ = ("expects", "keys", "kinds", "leaf", "nullable", "rank", "read", "takes", "wire", "write")

    def __init__(
        self,
        expects: str,
        read: Callable[[Any], Any],
        write: Callable[[Any], Any],
        kinds: frozenset[type] | None,
        *,
        takes: Callable[[Any], bool] | None = None,
        keys: frozenset[Any] = frozenset(),
        nullable: bool = False,
        rank: int = PLAIN,
        wire: str = "",
    ) -> None:
        self.expects: str = expects
        self.read: Final = read
        self.write: Final = write
        self.kinds: frozenset[type] | None = kinds
        self.takes: Final = takes
        self.keys: Final = keys
        self.nullable: Final = nullable
        self.leaf: Final = takes is None
        self.rank: Final = rank
        self.wire: Final = wire


class _BoundedRepr(Repr):
    """A short ``repr``, also of integers with more digits than Python prints."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() <= 512 else f"of {x.bit_length()} bits"


_SHORT: Final = _BoundedRepr()

MAPS: Final[frozenset[type]] = frozenset({dict, PairMap})
"""The classes of decoded maps."""

_COMPOUNDS: Final = {
    list: "a list",
    dict: "a map",
    PairMap: "a map",
    Array: "an array",
    ZeroWidthArray: "an array without octets",
}


def got(value: Any) -> str:
    """Return a received value as text, with the standard's name of its type.

    The author of the peer may not know Python.
    """
    cls = value.__class__
    if value is None:
        return "null"
    if cls is Described:
        return f"a value described by {_SHORT.repr(value.descriptor)}"
    if cls in _COMPOUNDS:
        return _COMPOUNDS[cls]
    name = TYPE_NAMES.get(cls)
    return f"a Python {cls.__name__}" if name is None else f"{name} {shown(value)}"


def shown(value: Any) -> str:
    """Return a short form of a scalar, without the class of its wire type."""
    plain = next((each for each in (bool, str, int, float) if isinstance(value, each)), None)
    return _SHORT.repr(plain(value) if plain else value)


def sent(obj: Any) -> str:
    """Return an object as text, with its Python class, for an error on sending."""
    return "None" if obj is None else f"{obj.__class__.__name__} {_SHORT.repr(obj)}"


def wrong(expects: str, value: Any) -> Misfit:
    """Return the error of a received value."""
    return Misfit(f"expected {expects}, got {got(value)}")


def wrong_object(expects: str, obj: Any) -> Misfit:
    """Return the error of an object that was passed to send."""
    return Misfit(f"expected {expects}, got {sent(obj)}")
