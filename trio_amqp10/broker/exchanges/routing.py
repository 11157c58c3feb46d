"""Routing: from an exchange and the keys of a message to queues.

It follows bindings to other exchanges. Knows exchanges and bindings; knows no arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.nodes.queue import Queue

from .bindings import Destination
from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.broker.nodes.node import Node

    from .bindings import Bindings
    from .exchanges import Exchange
    from .matchers import Headers

DEFAULT: Final = ""
"""The name of the default exchange, which routes by the name of a queue."""

_STEP: Final = 64
"""Keys and destinations that one step of a search tests: about 50 us."""
_COPIES: Final = ("CC", "BCC")


class Router:
    """Finds the queues of a message.

    Args:
        exchanges: the exchanges by name.
        bindings: all bindings.
        find: returns the node with the name of a queue, or None.
    """

    def __init__(
        self, exchanges: Mapping[str, Exchange], bindings: Bindings, find: Callable[[str], Node | None]
    ) -> None:
        self._exchanges = exchanges
        self._bindings = bindings
        self._find = find

    def route(self, exchange: Exchange, keys: Sequence[str], headers: Headers) -> list[Queue]:
        """Return the queues that a message reaches, each once, in the order of finding.

        Exchanges that are bound to each other in a circle are followed once. If a message matches no binding of an exchange, it goes
        to the alternate exchange of that, with the same keys.

        Args:
            exchange: the exchange that it is published to.
            keys: its routing keys: its own, and those of CC and BCC.
            headers: returns its headers; called only for exchanges of type headers.
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
        """Do the same as ``route`` in steps, between which others may have their turn.

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
    """Return the additional routing keys in the headers CC and BCC.

    BCC must be removed before the message is delivered; CC stays.

    Raises:
        PreconditionError: one of them is not an array of strings.
    """
    keys: list[str] = []
    for name in _COPIES:
        value = headers.get(name, ())
        if not isinstance(value, (list, tuple)):
            raise PreconditionError(
                f"the header {name} must be an array of strings, not {type(value).__name__}"
            )
        for key in cast("Sequence[object]", value):
            if not isinstance(key, str):
                raise PreconditionError(f"the header {name} must contain strings, not {type(key).__name__}")
            keys.append(key)
    return tuple(keys)
