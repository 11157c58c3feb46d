"""What the parts of the typed codec share: a codec, and the fault of a value that does not fit.

Knows no annotation and no type of AMQP but the names that faults mention: ``build`` makes codecs of
annotations, ``scalars``, ``compounds``, ``unions`` and ``structs`` know how each kind is carried.
"""

from __future__ import annotations

from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.wire.pair_map import PairMap
from trio_amqp10.wire.values import TYPE_NAMES, Array, Described, ZeroWidthArray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CLOSED",
    "EXACT",
    "MAPS",
    "PLAIN",
    "Codec",
    "Misfit",
    "got",
    "sent",
    "shown",
    "wrong",
    "wrong_object",
]

CLOSED: Final = 0
EXACT: Final = 1
PLAIN: Final = 2
"""Ranks, for a union whose members could take the same value: a closed choice before a type of the
wire, and that before a class of Python's, which takes several types."""


class Misfit(Exception):  # noqa: N818 - never leaves the package
    """A value, or an object, that is not what its annotation says.

    Attributes:
        detail: what was expected, and what was there.
        path: the steps to it, innermost first: each level adds its own as the fault passes.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail: Final = detail
        self.path: Final[list[str]] = []

    def text(self, root: str) -> str:
        """The fault with its path, as in ``Order.lines[2].price: expected ulong, got string 'x'``."""
        return f"{root}{''.join(reversed(self.path))}: {self.detail}"


class Codec:
    """How one annotation is carried.

    Attributes:
        expects: what it is, for people.
        read: the object of a value; raises Misfit.
        write: the value of an object; raises Misfit.
        kinds: classes of the values that it reads; None for any.
        takes: whether it is for this object at all, by a look at its class; None for a leaf.
        keys: the descriptors that it reads, where ``kinds`` has Described; none for any.
        nullable: whether null is a value of it.
        leaf: whether it holds no other values, so that trying it costs little.
        rank: see ``CLOSED``.
        wire: the standard's name of the one type that it writes, or "".
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
    """Short forms, also of integers with more digits than Python is willing to print."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() <= 512 else f"of {x.bit_length()} bits"


_SHORT: Final = _BoundedRepr()

MAPS: Final[frozenset[type]] = frozenset({dict, PairMap})
"""Classes of maps that were decoded."""

_COMPOUNDS: Final = {
    list: "a list",
    dict: "a map",
    PairMap: "a map",
    Array: "an array",
    ZeroWidthArray: "an array without octets",
}


def got(value: Any) -> str:
    """A value that came, by the standard's name of its type: a peer's author knows no Python."""
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
    """A scalar in short, without the class that remembers its type."""
    plain = next((each for each in (bool, str, int, float) if isinstance(value, each)), None)
    return _SHORT.repr(plain(value) if plain else value)


def sent(obj: Any) -> str:
    """An object that was to be sent, in Python's words."""
    return "None" if obj is None else f"{obj.__class__.__name__} {_SHORT.repr(obj)}"


def wrong(expects: str, value: Any) -> Misfit:
    """The fault of a value that came."""
    return Misfit(f"expected {expects}, got {got(value)}")


def wrong_object(expects: str, obj: Any) -> Misfit:
    """The fault of an object that was to be sent."""
    return Misfit(f"expected {expects}, got {sent(obj)}")
