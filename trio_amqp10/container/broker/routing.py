"""Routing: from an exchange and the keys of a message to queues, through other exchanges.

Knows exchanges and bindings; knows no arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.nodes.queue import Queue

from .bindings import Destination
from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.container.nodes.node import Node

    from .bindings import Bindings
    from .exchanges import Exchange
    from .matchers import Headers

__all__ = ["DEFAULT", "Router", "further_keys"]

DEFAULT: Final = ""
"""The name of the default exchange, which hands a message on to the queue that its key names."""

_STEP: Final = 64
"""Keys and destinations that one step of a search looks at: about 50 us."""
_COPIES: Final = ("CC", "BCC")


class Router:
    """Finds the queues of a message.

    Args:
        exchanges: by name.
        bindings: all there are.
        find: gives the node that has the name of a queue, or None.
    """

    def __init__(
        self, exchanges: Mapping[str, Exchange], bindings: Bindings, find: Callable[[str], Node | None]
    ) -> None:
        self._exchanges = exchanges
        self._bindings = bindings
        self._find = find

    def route(self, exchange: Exchange, keys: Sequence[str], headers: Headers) -> list[Queue]:
        """The queues that a message gets to, each once, in the order in which they are found.

        Exchanges that are bound to one another in a circle are followed once. Where a message matches no binding of an
        exchange, it goes on to the alternate exchange of that one, with its keys.

        Args:
            exchange: that it is published to.
            keys: its routing keys: its own, and those of CC and BCC.
            headers: gives its headers; called only for exchanges of type headers.
        """
        search = self.search(exchange, keys, headers)
        while True:
            try:
                next(search)
            except StopIteration as end:
                found: list[Queue] = end.value
                return found

    def search(
        self, exchange: Exchange, keys: Sequence[str], headers: Headers
    ) -> Generator[None, None, list[Queue]]:
        """As ``route``, in steps: the caller may let others have their turn after each.

        An exchange or a queue that is deleted meanwhile is left out; a binding that is made or removed meanwhile may count or not.
        """
        queues: dict[Queue, None] = {}
        followed = {exchange.name}
        todo = [exchange.name]
        looked = 0
        for name in todo:
            if name == DEFAULT:
                reached: dict[Destination, Any] = dict.fromkeys(Destination("queue", key) for key in keys)
            else:
                reached = {}
                matcher = self._bindings.matcher(name)
                if matcher is None:
                    continue
                for key in keys if matcher.compares_keys else keys[:1]:
                    looked += 1
                    if not looked % _STEP:
                        yield
                    yield from matcher.search(key, headers, reached)
            if not reached:
                reached = {Destination("exchange", each): None for each in self._alternates(name)}
            for kind, reached_name in reached:
                looked += 1
                if not looked % _STEP:
                    yield
                if kind == "exchange":
                    if reached_name not in followed:
                        followed.add(reached_name)
                        todo.append(reached_name)
                elif isinstance(node := self._find(reached_name), Queue):
                    queues[node] = None
        return list(queues)

    def _alternates(self, name: str) -> list[str]:
        exchange = self._exchanges.get(name)
        alternate = None if exchange is None else exchange.alternate
        return [] if alternate is None or alternate not in self._exchanges else [alternate]


def further_keys(headers: Mapping[str, Any]) -> tuple[str, ...]:
    """The routing keys that the headers CC and BCC of a message name beside its own.

    BCC is to be removed before the message is delivered; CC stays.

    Raises:
        PreconditionError: one of them is no array of strings.
    """
    keys: list[str] = []
    for name in _COPIES:
        value = headers.get(name, ())
        if not isinstance(value, (list, tuple)):
            raise PreconditionError(f"the header {name} is an array of strings, not {type(value).__name__}")
        for key in cast("Sequence[object]", value):
            if not isinstance(key, str):
                raise PreconditionError(f"the header {name} has strings, not {type(key).__name__}")
            keys.append(key)
    return tuple(keys)
