"""Matchers: how each type of exchange compares a message with its bindings.

=========  ===========================================================================================
direct     the keys are equal: one look-up for any number of bindings
fanout     keys do not matter
topic      the key of the binding is words between dots: ``*`` is any one word, ``#`` any number of words, or none. Words
           may be empty; a key that is empty has no word
headers    the arguments of the binding are compared with the headers of the message; only those bindings are tested whose
           most selective argument is in the message
=========  ===========================================================================================

The argument ``x-match`` of a binding to a headers exchange is ``all`` (the default) or ``any``, which ignore arguments that
begin with ``x-``; or ``all-with-x`` or ``any-with-x``, which do not. An argument without a value only requires that the header
is present. ``all`` without arguments matches every message, ``any`` without arguments matches none.

A search may be long, because many patterns may begin like a key and end differently. So it is divided into steps, between which
the caller may let others have their turn; bindings that are added or removed meanwhile may count or not.

Knows keys and headers; knows no exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from .argument_equality import comparable, name_of_type
from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from .bindings import Binding, Destination

    Headers: TypeAlias = Callable[[], Mapping[str, Any]]
    """Returns the headers of a message.

    Called at most once for each exchange of type headers, and for no other.
    """

_MATCH: Final = "x-match"
_STEP: Final = 64
"""Places or bindings that one step of a search tests: about 50 us."""
_MATCHES: Final = ("all", "any", "all-with-x", "any-with-x")


class Matcher(Protocol):
    """The bindings of one exchange."""

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise ``PreconditionError`` if no binding can have these arguments."""
        ...

    def add(self, binding: Binding) -> None:
        """Add a new binding."""
        ...

    def discard(self, binding: Binding) -> None:
        """Remove an existing binding."""
        ...

    @property
    def compares_keys(self) -> bool:
        """Whether the key of a message matters; if not, only its first key is searched."""
        ...

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterable[None]:
        """Add the destinations of matching bindings to ``found``; return the steps."""
        ...


class _Counted:
    """Destinations, each with the number of bindings to it."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: dict[Destination, int] = {}

    def add(self, destination: Destination) -> None:
        self.counts[destination] = self.counts.get(destination, 0) + 1

    def discard(self, destination: Destination) -> None:
        if self.counts[destination] == 1:
            del self.counts[destination]
        else:
            self.counts[destination] -= 1


class _Unchecked:
    """The base of matchers that accept any arguments and compare none."""

    compares_keys = True

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Accept all: arguments have no effect."""


class DirectMatcher(_Unchecked):
    """Bindings by key."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Counted] = {}

    def add(self, binding: Binding) -> None:
        self._by_key.setdefault(binding.key, _Counted()).add(binding.destination)

    def discard(self, binding: Binding) -> None:
        there = self._by_key[binding.key]
        there.discard(binding.destination)
        if not there.counts:
            del self._by_key[binding.key]

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterable[None]:  # noqa: ARG002
        there = self._by_key.get(key)
        if there is not None:
            found.update(there.counts)
        return ()


class FanoutMatcher(_Unchecked):
    """All bindings."""

    compares_keys = False

    def __init__(self) -> None:
        self._all = _Counted()

    def add(self, binding: Binding) -> None:
        self._all.add(binding.destination)

    def discard(self, binding: Binding) -> None:
        self._all.discard(binding.destination)

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterable[None]:  # noqa: ARG002
        found.update(self._all.counts)
        return ()


# Topics -----------------------------------------------------------------------------------------


class _TreeNode:
    """A place in the tree of patterns, after the words that have matched.

    Attributes:
        repeats: whether it was reached by ``#``, which matches any further word too.
        words: the next places by word.
        star, hash: the next places for ``*`` and ``#``; None if no pattern continues so.
        ends: the destinations of the patterns that end here.
    """

    __slots__ = ("ends", "hash", "repeats", "star", "words")

    def __init__(self, *, repeats: bool = False) -> None:
        self.repeats = repeats
        self.words: dict[str, _TreeNode] = {}
        self.star: _TreeNode | None = None
        self.hash: _TreeNode | None = None
        self.ends = _Counted()

    @property
    def empty(self) -> bool:
        """Whether no pattern goes through it any more."""
        return not (self.words or self.star or self.hash or self.ends.counts)

    def next(self, word: str) -> _TreeNode | None:
        """Return the place after a word of a pattern, or None."""
        if word == "*":
            return self.star
        return self.hash if word == "#" else self.words.get(word)

    def grow(self, word: str) -> _TreeNode:
        """Return the place after a word of a pattern; make it if there is none."""
        step = self.next(word)
        if step is None:
            step = _TreeNode(repeats=word == "#")
            if word == "*":
                self.star = step
            elif word == "#":
                self.hash = step
            else:
                self.words[word] = step
        return step

    def cut(self, word: str) -> None:
        """Remove the place after a word of a pattern."""
        if word == "*":
            self.star = None
        elif word == "#":
            self.hash = None
        else:
            del self.words[word]


class TopicMatcher(_Unchecked):
    """Patterns, as a tree of their words.

    All possible places of a key are followed at once. So the cost of a key is at most its number of words, times the places that
    these words lead to; patterns that begin with other words cost nothing, and many ``#`` in one pattern cost no more than their
    number.
    """

    def __init__(self) -> None:
        self._root = _TreeNode()

    def add(self, binding: Binding) -> None:
        step = self._root
        for word in _words(binding.key):
            step = step.grow(word)
        step.ends.add(binding.destination)

    def discard(self, binding: Binding) -> None:
        words = _words(binding.key)
        steps = [self._root]
        for word in words:
            step = steps[-1].next(word)
            assert step is not None
            steps.append(step)
        steps[-1].ends.discard(binding.destination)
        while words and steps.pop().empty:
            steps[-1].cut(words.pop())

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterator[None]:  # noqa: ARG002
        reached: dict[_TreeNode, None] = {}
        _reach(reached, self._root)
        looked = 0
        for word in _words(key):
            before, reached = reached, {}
            for step in before:
                looked += 1
                if not looked % _STEP:
                    yield
                if step.repeats:
                    _reach(reached, step)
                if (same := step.words.get(word)) is not None:
                    _reach(reached, same)
                if step.star is not None:
                    _reach(reached, step.star)
            if not reached:
                return
        for step in reached:
            looked += 1
            if not looked % _STEP:
                yield
            found.update(step.ends.counts)


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _reach(reached: dict[_TreeNode, None], step: _TreeNode | None) -> None:
    """Add this place, and the places after each ``#`` that follows.

    ``#`` may match no word at all.
    """
    while step is not None and step not in reached:
        reached[step] = None
        step = step.hash


# Headers ----------------------------------------------------------------------------------------


class _Condition:
    """The conditions of bindings with the same arguments.

    Attributes:
        any: whether one of the arguments is enough.
        names: headers that must be present.
        pairs: headers that must be present with these values.
        key: equal for equal arguments.
        destinations: the destinations of the bindings.
        places: its places in the index.
    """

    __slots__ = ("any", "destinations", "key", "names", "pairs", "places")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(_MATCH, "all")
        self.any: bool = match.startswith("any")
        with_x = match.endswith("-with-x")
        wanted = {
            (str(name), comparable(value))
            for name, value in arguments.items()
            if name != _MATCH and (with_x or not name.startswith("x-"))
        }
        self.names = frozenset(name for name, value in wanted if value is None)
        self.pairs = frozenset(pair for pair in wanted if pair[1] is not None)
        self.key: Hashable = self.any, self.names, self.pairs
        self.destinations = _Counted()
        self.places: list[Hashable] = []

    def fits(self, present: Mapping[str, Hashable]) -> bool:
        """Whether a message with these headers meets the conditions.

        A message finds an ``any`` condition only by one of its headers, so that is met already.
        """
        return self.any or (self.pairs <= present.items() and self.names <= present.keys())


class HeadersMatcher:
    """Bindings whose arguments are compared with the headers.

    Bindings with equal arguments share one condition. A condition that requires all its arguments is in the index under one of
    them: the one with the fewest other conditions, and with a value if there is one. A condition that requires any is under each.
    So a message is compared with the conditions under its own headers only.
    """

    compares_keys = False

    def __init__(self) -> None:
        self._conditions: dict[Hashable, _Condition] = {}
        self._index: dict[Hashable, dict[_Condition, None]] = {}
        """The index: by name and value of a header, by name, and None for no conditions."""

    def check(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(_MATCH, "all")
        if not isinstance(match, str):
            raise PreconditionError(
                f"Invalid x-match field type {name_of_type(match)} (value {match}); expected longstr"
            )
        if match not in _MATCHES:
            expected = "all, any, all-with-x, or any-with-x"
            raise PreconditionError(f'Invalid x-match field value <<"{match}">>; expected {expected}')

    def add(self, binding: Binding) -> None:
        condition = _Condition(binding.arguments)
        there = self._conditions.get(condition.key)
        if there is None:
            there = self._conditions[condition.key] = condition
            there.places.extend(self._places_for(condition))
            for place in there.places:
                self._index.setdefault(place, {})[there] = None
        there.destinations.add(binding.destination)

    def _places_for(self, condition: _Condition) -> Iterable[Hashable]:
        if condition.any:
            return (*condition.pairs, *condition.names)
        if not condition.pairs and not condition.names:
            return (None,)
        return (min(condition.pairs or condition.names, key=lambda place: len(self._index.get(place, ()))),)

    def discard(self, binding: Binding) -> None:
        condition = self._conditions[_Condition(binding.arguments).key]
        condition.destinations.discard(binding.destination)
        if condition.destinations.counts:
            return
        del self._conditions[condition.key]
        for place in condition.places:
            filed = self._index[place]
            del filed[condition]
            if not filed:
                del self._index[place]

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterator[None]:  # noqa: ARG002
        if not self._conditions:
            return
        present = {str(name): comparable(value) for name, value in headers().items()}
        looked = 0
        for place in (None, *present, *present.items()):
            filed = self._index.get(place)
            for condition in () if filed is None else list(filed):
                looked += 1 + (len(condition.pairs) >> 3)
                if looked >= _STEP:
                    looked = 0
                    yield
                if condition.fits(present):
                    found.update(condition.destinations.counts)


_TYPES: Final[Mapping[str, Callable[[], Matcher]]] = {
    "direct": DirectMatcher,
    "fanout": FanoutMatcher,
    "topic": TopicMatcher,
    "headers": HeadersMatcher,
}

KINDS: Final = tuple(_TYPES)
"""The types of exchanges."""


def matcher_of(kind: str) -> Matcher:
    """Make the matcher of an exchange of this type."""
    return _TYPES[kind]()
