"""Maps that no dict can hold: keys that Python cannot tell apart, or cannot hash (1.6.23).

A map of the standard may have the symbol ``k`` beside the string ``k``, the uint 1 beside the boolean
true, and lists or maps as keys. ``decode`` makes a ``PairMap`` of such a map, and a dict of all others.

Two keys are identical if they have the same type and value, which is to say the same octets. Only a NaN
is identical to nothing, itself included, as in a dict.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from contextlib import suppress
from typing import Any, Self, TypeVar

from trio_amqp10.errors import LocalProtocolError

from .encode import encode

__all__ = ["PairMap", "copied", "simplest"]

K = TypeVar("K")
V = TypeVar("V")


class PairMap(MutableMapping[K, V]):
    """A map that keeps every pair, by type and value of its key, in the order in which they came (1.6.23).

    Reading a key finds the key of exactly that type, otherwise the first that is equal in Python: with
    ``PairMap([(Symbol("k"), 1), ("k", 2)])`` the string ``"k"`` finds 2, ``Symbol("k")`` finds 1. Setting a
    key changes the pair that reading it finds, or adds one. Equal to a mapping with the same pairs in any order,
    whose keys are of the same types. Sent as it is: nowhere does a str key become a symbol.

    Args:
        pairs: a mapping, or pairs of key and value.

    Raises:
        LocalProtocolError: two keys are identical.
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._pairs: dict[object, tuple[K, V]] = {}  # by the octets of the key
        each: Any = pairs
        for key, value in each.items() if isinstance(pairs, Mapping) else each:
            if not self.add(key, value):
                raise LocalProtocolError(f"the key {key!r} appears twice in this map")

    def add(self, key: K, value: V) -> bool:
        """Add a pair beside those with equal keys; False, and nothing is changed, if an identical key is there."""
        place = _octets(key) or object()
        if place in self._pairs:
            return False
        self._pairs[place] = key, value
        return True

    def _find(self, key: object) -> object:
        """The place of the key that is meant.

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
        """The pairs, all of them."""
        return _Items(self, self._pairs)

    def values(self) -> ValuesView[V]:
        """The values, all of them."""
        return _Values(self, self._pairs)

    def clear(self) -> None:
        """Remove all pairs."""
        self._pairs.clear()

    def copy(self) -> Self:
        """Another map of the same pairs."""
        return type(self)(self)

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        raw: Any = other  # what a type checker does not narrow to a mapping of unknowns
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
    """What tells the key from all others; None for a NaN, and for what has no type in AMQP."""
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
    """A dict of these pairs; a PairMap where no dict can hold them all.

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
    """A dict of these pairs, or a PairMap of those of a PairMap; an empty dict for None."""
    raw: Any = pairs
    if raw.__class__ is dict:
        return raw.copy()
    return pairs.copy() if isinstance(pairs, PairMap) else dict(pairs or {})
