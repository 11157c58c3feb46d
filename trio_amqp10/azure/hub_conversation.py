"""HubConversation: one connection of Event Hubs, whose links say in a filter where they begin, and may have an epoch.

Knows links and nodes; does not know what a partition is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.container.nodes.node import Interest, RefusedError
from trio_amqp10.container.protocols.amqp10.conversation import Conversation
from trio_amqp10.spec.messaging import Source

from .hub import Readers
from .positions import parse_position
from .words import ARGUMENT_ERROR, EPOCH, METRICS, SELECTOR

if TYPE_CHECKING:
    from trio_amqp10.peer.incoming import IncomingSender

__all__ = ["HubConversation"]


class HubConversation(Conversation):
    """See ``Conversation``."""

    def admit_outlet(self, link: IncomingSender, asked: Any) -> None:
        node = self.find_source(asked)
        if not isinstance(asked, Source) or not isinstance(node, Readers):
            super().admit_outlet(link, asked)
            return
        if not link.is_waiting:
            return  # the peer has detached it meanwhile
        interest = Interest(name=link.name)
        node.check_outlet(self, copying=True, target=None, interest=interest)
        filters: dict[Any, Any] = dict(asked.filter or {})
        selector = filters.get(SELECTOR)
        metrics = METRICS in link.remote.desired_capabilities
        cursor = node.cursor(parse_position(selector), _epoch(link), metrics=metrics)
        source = Source(
            address=asked.address,  # as it came: clients compare it
            filter=None if selector is None else {SELECTOR: selector},
            default_outcome=asked.default_outcome,
            outcomes=asked.outcomes,
        )
        self.serve_outlet(
            link,
            node,
            source,
            interest,
            copying=True,
            properties=_properties(link),
            prepare=partial(node.place, cursor=cursor),
        )


def _epoch(link: IncomingSender) -> int | None:
    said: Any = (link.remote.properties or {}).get(EPOCH)
    if said is None:
        return None
    if not isinstance(said, int) or isinstance(said, bool) or said < 0:
        raise RefusedError(ARGUMENT_ERROR, f"{EPOCH} {said!r}: a number from 0 is possible")
    return int(said)


def _properties(link: IncomingSender) -> dict[Any, Any] | None:
    """An epoch is told back."""
    epoch = (link.remote.properties or {}).get(EPOCH)
    return None if epoch is None else {EPOCH: epoch}
