"""Bindings, found by their source and by their destination.

Each exchange has a matcher of its type, so that the cost of a message depends on its own key and headers, and not on other
bindings. The cost of deleting a queue depends on its own bindings only.

Knows names; knows no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from .argument_equality import comparable
from .matchers import Matcher, matcher_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Destination(NamedTuple):
    """The destination of a binding.

    Attributes:
        kind: ``"queue"`` or ``"exchange"``.
        name: the name of the queue or exchange.
    """

    kind: Literal["queue", "exchange"]
    name: str


class Binding:
    """A rule by which an exchange forwards messages to a queue or exchange.

    Two bindings are equal if all their fields are, the arguments by value.

    Args:
        source: the name of the exchange.
        destination: the queue or exchange that gets the messages.
        key: compared with the routing key.
        arguments: compared with the headers, for exchanges of type headers.

    Attributes:
        source, destination, key, arguments: as given.
    """

    __slots__ = ("_identity", "arguments", "destination", "key", "source")

    def __init__(
        self,
        source: str,
        destination: Destination,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.source: Final = source
        self.destination: Final = destination
        self.key: Final = key
        self.arguments: dict[str, Any] = dict(arguments or {})
        self._identity = source, destination, key, comparable(self.arguments)

    def __eq__(self, other: object) -> bool:
        return self._identity == other._identity if isinstance(other, Binding) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        kind, name = self.destination
        return f"<Binding {self.source!r} to {kind} {name!r} key={self.key!r} arguments={self.arguments!r}>"


class Bindings:
    """All bindings of a broker."""

    def __init__(self) -> None:
        self._all: dict[Binding, Binding] = {}
        self._by_source: dict[str, tuple[Matcher, dict[Binding, None]]] = {}
        self._by_destination: dict[Destination, dict[Binding, None]] = {}

    def __iter__(self) -> Iterator[Binding]:
        """Iterate in the order of creation."""
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, binding: Binding) -> bool:
        return binding in self._all

    def has(self, binding: Binding) -> bool:
        """Whether this very object is here, not only an equal binding."""
        return self._all.get(binding) is binding

    def open_source(self, exchange: str, kind: str) -> None:
        """Add an exchange of this type."""
        self._by_source[exchange] = matcher_of(kind), {}

    def close_source(self, exchange: str) -> None:
        """Remove an exchange, whose bindings are removed already."""
        del self._by_source[exchange]

    def check(self, binding: Binding) -> None:
        """Raise ``PreconditionError`` if the exchange cannot have such a binding."""
        self._by_source[binding.source][0].check(binding.arguments)

    def add(self, binding: Binding) -> bool:
        """Add a binding that ``check`` has passed; return False if there is an equal one."""
        if binding in self._all:
            return False
        matcher, bindings = self._by_source[binding.source]
        matcher.add(binding)
        self._all[binding] = binding
        bindings[binding] = None
        self._by_destination.setdefault(binding.destination, {})[binding] = None
        return True

    def remove(self, binding: Binding) -> Binding | None:
        """Remove the binding that equals this one, and return it, or None."""
        found = self._all.pop(binding, None)
        if found is None:
            return None
        matcher, bindings = self._by_source[found.source]
        matcher.discard(found)
        del bindings[found]
        leading = self._by_destination[found.destination]
        del leading[found]
        if not leading:
            del self._by_destination[found.destination]
        return found

    def of_source(self, exchange: str) -> tuple[Binding, ...]:
        """Return the bindings of an exchange, oldest first."""
        found = self._by_source.get(exchange)
        return () if found is None else tuple(found[1])

    def is_source(self, exchange: str) -> bool:
        """Whether the exchange is the source of any binding."""
        return bool(self._by_source[exchange][1])

    def of_destination(self, destination: Destination) -> tuple[Binding, ...]:
        """Return the bindings to a destination, oldest first."""
        return tuple(self._by_destination.get(destination, ()))

    def matcher(self, exchange: str) -> Matcher | None:
        """Return the matcher of an exchange, or None if there is no such exchange."""
        found = self._by_source.get(exchange)
        return None if found is None else found[0]
