"""Routing: from an exchange and the keys of a message to queues, through other exchanges.

Knows exchanges and bindings; knows no arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.nodes.queue import Queue

from .faults import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.container.nodes.node import Node

    from .bindings import Bindings, Destination
    from .exchanges import Exchange
    from .matchers import Headers

__all__ = ["DEFAULT", "Router", "further_keys"]

DEFAULT: Final = ""
"""The name of the default exchange, which hands a message on to the queue that its key names."""

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
        queues: dict[Queue, None] = {}
        followed = {exchange.name}
        todo = [exchange.name]
        for name in todo:
            if name == DEFAULT:
                self._collect(queues, keys)
                continue
            reached: dict[Destination, object] = {}
            for key in keys:
                reached.update(self._bindings.match(name, key, headers))
            self._collect(queues, [each.name for each in reached if each.kind == "queue"])
            further = [each.name for each in reached if each.kind == "exchange"]
            if not reached:
                further = self._alternates(name)
            for each in further:
                if each not in followed:
                    followed.add(each)
                    todo.append(each)
        return list(queues)

    def _collect(self, queues: dict[Queue, None], names: Sequence[str]) -> None:
        for name in names:
            node = self._find(name)
            if isinstance(node, Queue):
                queues[node] = None

    def _alternates(self, name: str) -> list[str]:
        alternate = self._exchanges[name].alternate
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
