"""How each type of exchange compares a message with its bindings.

=========  ===========================================================================================
direct     the keys are equal: one look-up, however many bindings there are
fanout     keys do not matter
topic      the key of the binding is words between dots: ``*`` is any one word, ``#`` any number of words, none
           included. Words may be empty; a key that is empty has no word
headers    the arguments of the binding are compared with the headers of the message; only those bindings are looked
           at that the message has the most selective argument of
=========  ===========================================================================================

The argument ``x-match`` of a binding to a headers exchange is ``all`` (the default) or ``any``, which do not look at
arguments that begin with ``x-``; or ``all-with-x`` or ``any-with-x``, which do. An argument without a value asks only
that the header is there. ``all`` without arguments matches every message, ``any`` none.

A search may be long, as many patterns may begin like a key and end otherwise. So it is given as steps, between which the
caller may let others have their turn; bindings that are added or removed meanwhile may count or not.

Knows keys and headers; knows no exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from .argument_values import comparable
from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from .bindings import Binding, Destination

    Headers: TypeAlias = Callable[[], Mapping[str, Any]]
    """Gives the headers of a message: called at most once for each exchange of type headers, and for no other."""

__all__ = ["KINDS", "Direct", "Fanout", "Headed", "Matcher", "Topical", "matcher_of"]

_MATCH: Final = "x-match"
_STEP: Final = 64
"""Places or bindings that one step of a search looks at: about 50 us."""
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

    @property
    def compares_keys(self) -> bool:
        """Whether the key of a message matters: if not, a search by its first key finds all."""
        ...

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterable[None]:
        """Add the destinations of the bindings that a message matches to ``found``, in the steps that are returned."""
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

    compares_keys = True

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Arguments have no effect."""


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

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterable[None]:  # noqa: ARG002
        there = self._by_key.get(key)
        if there is not None:
            found.update(there.counts)
        return ()


class Fanout(_Unchecked):
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

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterator[None]:  # noqa: ARG002
        reached: dict[_Step, None] = {}
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


def _reach(reached: dict[_Step, None], step: _Step | None) -> None:
    """Be at this place, and at those behind any ``#`` that follows, as that may be no word at all."""
    while step is not None and step not in reached:
        reached[step] = None
        step = step.hash


# Headers ----------------------------------------------------------------------------------------


class _Question:
    """What bindings with the same arguments ask of the headers.

    Attributes:
        any: whether one of the arguments is enough.
        names: headers that have to be there.
        pairs: headers that have to be there, with their values.
        key: equal for equal arguments.
        destinations: where the bindings lead to.
        places: where the index has it.
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
        """Whether a message with these headers answers it; one that wants any of them is only asked in that case."""
        return self.any or (self.pairs <= present.items() and self.names <= present.keys())


class Headed:
    """Bindings whose arguments are compared with the headers.

    Bindings with equal arguments are one question. It is filed under one argument if it wants all of them, under that which the
    fewest others are filed under, and rather under one with a value; under each if it wants any. So a message is compared with
    the questions that are filed under its own headers.
    """

    compares_keys = False

    def __init__(self) -> None:
        self._questions: dict[Hashable, _Question] = {}
        self._filed: dict[Hashable, dict[_Question, None]] = {}
        """By the name of a header and its value, by its name alone, and by None: those that want nothing."""

    def check(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get(_MATCH, "all")
        if match not in _MATCHES:
            raise PreconditionError(f"invalid x-match {match!r}: expected one of {', '.join(_MATCHES)}")

    def add(self, binding: Binding) -> None:
        question = _Question(binding.arguments)
        there = self._questions.get(question.key)
        if there is None:
            there = self._questions[question.key] = question
            there.places.extend(self._places_for(question))
            for place in there.places:
                self._filed.setdefault(place, {})[there] = None
        there.destinations.add(binding.destination)

    def _places_for(self, question: _Question) -> Iterable[Hashable]:
        if question.any:
            return (*question.pairs, *question.names)
        if not question.pairs and not question.names:
            return (None,)
        return (min(question.pairs or question.names, key=lambda place: len(self._filed.get(place, ()))),)

    def discard(self, binding: Binding) -> None:
        question = self._questions[_Question(binding.arguments).key]
        question.destinations.discard(binding.destination)
        if question.destinations.counts:
            return
        del self._questions[question.key]
        for place in question.places:
            filed = self._filed[place]
            del filed[question]
            if not filed:
                del self._filed[place]

    def search(self, key: str, headers: Headers, found: dict[Destination, object]) -> Iterator[None]:  # noqa: ARG002
        if not self._questions:
            return
        present = {str(name): comparable(value) for name, value in headers().items()}
        looked = 0
        for place in (None, *present, *present.items()):
            filed = self._filed.get(place)
            for question in () if filed is None else list(filed):
                looked += 1 + (len(question.pairs) >> 3)
                if looked >= _STEP:
                    looked = 0
                    yield
                if question.fits(present):
                    found.update(question.destinations.counts)


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
