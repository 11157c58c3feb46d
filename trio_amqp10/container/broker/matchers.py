"""How each type of exchange compares a message with its bindings.

=========  ===========================================================================================
direct     the keys are equal: one look-up, however many bindings there are
fanout     keys do not matter
topic      the key of the binding is words between dots: ``*`` is any one word, ``#`` any number of words, none
           included. Words may be empty; a key that is empty has no word
headers    the arguments of the binding are compared with the headers of the message, one binding after the other
=========  ===========================================================================================

The argument ``x-match`` of a binding to a headers exchange is ``all`` (the default) or ``any``, which do not look at
arguments that begin with ``x-``; or ``all-with-x`` or ``any-with-x``, which do. An argument without a value asks only
that the header is there. ``all`` without arguments matches every message, ``any`` none.

Knows keys and headers; knows no exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from .argument_values import comparable
from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from typing import TypeAlias

    from .bindings import Binding, Destination

    Headers: TypeAlias = Callable[[], Mapping[str, Any]]
    """Gives the headers of a message: called at most once for each exchange of type headers, and for no other."""

__all__ = ["KINDS", "Direct", "Fanout", "Headed", "Matcher", "Topical", "matcher_of"]

_MATCH: Final = "x-match"
_MATCHES: Final = ("all", "any", "all-with-x", "any-with-x")


class Matcher(Protocol):
    """The bindings of one exchange."""

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise ``PreconditionError`` if no binding can have these arguments."""
        ...

    def add(self, binding: Binding) -> None:
        """Add a binding that was not there."""
        ...

    def discard(self, binding: Binding) -> None:
        """Remove a binding that was there."""
        ...

    def match(self, key: str, headers: Headers) -> Mapping[Destination, object]:
        """The destinations of the bindings that a message matches."""
        ...


class _Counted:
    """Destinations, each with the number of bindings that lead to it."""

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
    """Takes any arguments, and compares none."""

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Arguments have no effect."""


_NOWHERE: Final[Mapping[Destination, object]] = {}


class Direct(_Unchecked):
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

    def match(self, key: str, headers: Headers) -> Mapping[Destination, object]:  # noqa: ARG002
        there = self._by_key.get(key)
        return _NOWHERE if there is None else there.counts


class Fanout(_Unchecked):
    """All bindings."""

    def __init__(self) -> None:
        self._all = _Counted()

    def add(self, binding: Binding) -> None:
        self._all.add(binding.destination)

    def discard(self, binding: Binding) -> None:
        self._all.discard(binding.destination)

    def match(self, key: str, headers: Headers) -> Mapping[Destination, object]:  # noqa: ARG002
        return self._all.counts


# Topics -----------------------------------------------------------------------------------------


class _Step:
    """A place in the tree of patterns: what was read so far has matched.

    Attributes:
        repeats: whether it was reached by ``#``, which any further word may be part of.
        words: the next places by word.
        star, hash: the next places for ``*`` and ``#``; None if no pattern goes on so.
        ends: the destinations of the patterns that end here.
    """

    __slots__ = ("ends", "hash", "repeats", "star", "words")

    def __init__(self, *, repeats: bool = False) -> None:
        self.repeats = repeats
        self.words: dict[str, _Step] = {}
        self.star: _Step | None = None
        self.hash: _Step | None = None
        self.ends = _Counted()

    @property
    def empty(self) -> bool:
        """Whether nothing needs it any more."""
        return not (self.words or self.star or self.hash or self.ends.counts)

    def next(self, word: str) -> _Step | None:
        """The place after a word of a pattern, if there is one."""
        if word == "*":
            return self.star
        return self.hash if word == "#" else self.words.get(word)

    def grow(self, word: str) -> _Step:
        """The same; made if there is none."""
        step = self.next(word)
        if step is None:
            step = _Step(repeats=word == "#")
            if word == "*":
                self.star = step
            elif word == "#":
                self.hash = step
            else:
                self.words[word] = step
        return step

    def cut(self, word: str) -> None:
        """Forget the place after a word of a pattern."""
        if word == "*":
            self.star = None
        elif word == "#":
            self.hash = None
        else:
            del self.words[word]


class Topical(_Unchecked):
    """Patterns, as a tree of their words.

    All places that a key can be at are followed at once, so a key costs at most its words times the places that these
    words lead to; patterns that begin otherwise cost nothing, and many ``#`` in one pattern no more than their number.
    """

    def __init__(self) -> None:
        self._root = _Step()

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

    def match(self, key: str, headers: Headers) -> Mapping[Destination, object]:  # noqa: ARG002
        reached: dict[_Step, None] = {}
        _reach(reached, self._root)
        for word in _words(key):
            before, reached = reached, {}
            for step in before:
                if step.repeats:
                    _reach(reached, step)
                if (same := step.words.get(word)) is not None:
                    _reach(reached, same)
                if step.star is not None:
                    _reach(reached, step.star)
            if not reached:
                return _NOWHERE
        found: dict[Destination, object] = {}
        for step in reached:
            found.update(step.ends.counts)
        return found


def _words(key: str) -> list[str]:
    return key.split(".") if key else []


def _reach(reached: dict[_Step, None], step: _Step | None) -> None:
    """Be at this place, and at those behind any ``#`` that follows, as that may be no word at all."""
    while step is not None and step not in reached:
        reached[step] = None
        step = step.hash


# Headers ----------------------------------------------------------------------------------------


class _Wanted:
    """What one binding asks of the headers."""

    __slots__ = ("any", "values")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(_MATCH, "all")
        self.any = match.startswith("any")
        with_x = match.endswith("-with-x")
        self.values: list[tuple[str, Hashable]] = [
            (str(name), comparable(value))
            for name, value in arguments.items()
            if name != _MATCH and (with_x or not name.startswith("x-"))
        ]

    def fits(self, headers: Mapping[str, Hashable]) -> bool:
        if self.any:
            return any(name in headers and value in (None, headers[name]) for name, value in self.values)
        return all(name in headers and value in (None, headers[name]) for name, value in self.values)


class Headed:
    """Bindings whose arguments are compared with the headers."""

    def __init__(self) -> None:
        self._all: dict[Binding, _Wanted] = {}

    def check(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(_MATCH, "all")
        if match not in _MATCHES:
            raise PreconditionError(f"invalid x-match {match!r}: expected one of {', '.join(_MATCHES)}")

    def add(self, binding: Binding) -> None:
        self._all[binding] = _Wanted(binding.arguments)

    def discard(self, binding: Binding) -> None:
        del self._all[binding]

    def match(self, key: str, headers: Headers) -> Mapping[Destination, object]:  # noqa: ARG002
        if not self._all:
            return _NOWHERE
        present = {str(name): comparable(value) for name, value in headers().items()}
        return {binding.destination: None for binding, wanted in self._all.items() if wanted.fits(present)}


_TYPES: Final[Mapping[str, Callable[[], Matcher]]] = {
    "direct": Direct,
    "fanout": Fanout,
    "topic": Topical,
    "headers": Headed,
}

KINDS: Final = tuple(_TYPES)
"""The types of exchanges."""


def matcher_of(kind: str) -> Matcher:
    """Makes the matcher of an exchange of this type."""
    return _TYPES[kind]()
