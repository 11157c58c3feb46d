"""Maps that a dict cannot hold: with equal or unhashable keys (1.6.23).

A map of the standard may have the symbol ``k`` and the string ``k``, the uint 1 and the boolean true, and lists or maps as keys.
``decode`` returns a ``PairMap`` for such a map, and a dict for all others.

Two keys are identical if they have the same type and value, which means the same octets. A NaN is identical to no key, not even
to itself, as in a dict.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from contextlib import suppress
from typing import Any, Self, TypeVar

from trio_amqp10.core.errors import LocalProtocolError

from .encode import encode

K = TypeVar("K")
V = TypeVar("V")


class PairMap(MutableMapping[K, V]):
    """A map that keeps every pair, by type and value of its key, in order (1.6.23).

    Reading a key finds the key of exactly that type; without one, the first key that is equal in Python. With
    ``PairMap([(Symbol("k"), 1), ("k", 2)])`` the string ``"k"`` finds 2, and ``Symbol("k")`` finds 1. Setting a key changes the
    pair that reading it finds, or adds a pair. A PairMap equals a mapping with the same pairs in any order, if their keys have
    the same types. It is sent as it is: a str key never becomes a symbol.

    Args:
        pairs: a mapping, or pairs of key and value.

    Raises:
        LocalProtocolError: two keys are identical.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._pairs: dict[object, tuple[K, V]] = {}  # by the encoded key
        each: Any = pairs
        for key, value in each.items() if isinstance(pairs, Mapping) else each:
            if not self.add(key, value):
                raise LocalProtocolError(f"the key {key!r} appears twice in this map")

    def add(self, key: K, value: V) -> bool:
        """Add a pair even if equal keys exist; return False if an identical key exists."""
        place = _octets(key) or object()
        if place in self._pairs:
            return False
        self._pairs[place] = key, value
        return True

    def _find(self, key: object) -> object:
        """Return the place of the key that reading finds.

        Raises:
            KeyError: there is none.
        """
        octets = _octets(key)
        if octets in self._pairs:
            return octets
        for place, (each, _) in self._pairs.items():
            if each is key or each == key:
                return place
        raise KeyError(key)

    def __getitem__(self, key: K) -> V:
        return self._pairs[self._find(key)][1]

    def __setitem__(self, key: K, value: V) -> None:
        try:
            place = self._find(key)
        except KeyError:
            self.add(key, value)
        else:
            self._pairs[place] = self._pairs[place][0], value

    def __delitem__(self, key: K) -> None:
        del self._pairs[self._find(key)]

    def __iter__(self) -> Iterator[K]:
        return iter([key for key, _ in self._pairs.values()])

    def __len__(self) -> int:
        return len(self._pairs)

    def items(self) -> ItemsView[K, V]:
        """Return a view of all pairs."""
        return _Items(self, self._pairs)

    def values(self) -> ValuesView[V]:
        """Return a view of all values."""
        return _Values(self, self._pairs)

    def clear(self) -> None:
        """Remove all pairs."""
        self._pairs.clear()

    def copy(self) -> Self:
        """Return a shallow copy."""
        return type(self)(self)

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        raw: Any = other  # for the type checker, which narrows only to a mapping of unknown types
        if not isinstance(other, Mapping):
            return NotImplemented
        try:
            theirs: PairMap[Any, Any] = raw if raw.__class__ is PairMap else PairMap(raw)
        except LocalProtocolError:
            return False
        mine = {place: value for place, (_, value) in self._pairs.items()}
        return mine == {place: value for place, (_, value) in theirs._pairs.items()}

    __hash__ = None  # type: ignore[assignment]  # it may change

    def __repr__(self) -> str:
        return f"PairMap({list(self._pairs.values())!r})"


def _octets(key: object) -> bytes | None:
    """Return the encoded key; None for a NaN, and for a value without an AMQP type."""
    if key == key:
        with suppress(LocalProtocolError):
            return encode(key)
    return None


class _Items(ItemsView[K, V]):
    def __init__(self, mapping: PairMap[K, V], pairs: dict[object, tuple[K, V]]) -> None:
        super().__init__(mapping)
        self._pairs = pairs

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return iter(self._pairs.values())


class _Values(ValuesView[V]):
    def __init__(self, mapping: PairMap[Any, V], pairs: dict[object, tuple[Any, V]]) -> None:
        super().__init__(mapping)
        self._pairs = pairs

    def __iter__(self) -> Iterator[V]:
        return iter([value for _, value in self._pairs.values()])


def simplest(pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Return a dict of the pairs, or a PairMap if a dict cannot hold them all.

    Raises:
        LocalProtocolError: two keys are identical.
    """
    every = list(pairs)
    with suppress(TypeError):
        plain = dict(every)
        if len(plain) == len(every):
            return plain
    return PairMap(every)


def copied(pairs: Mapping[Any, Any] | None) -> Any:
    """Copy the pairs to a dict, or to a PairMap if they are one; {} for None."""
    raw: Any = pairs
    if raw.__class__ is dict:
        return raw.copy()
    return pairs.copy() if isinstance(pairs, PairMap) else dict(pairs or {})
