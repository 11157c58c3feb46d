"""EventHubConnection: a connection of Event Hubs, with offsets and epochs.

Knows links and nodes; does not know what a partition is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.server.connection import Amqp10Connection
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.broker.nodes.node import RefusedError, SubscriptionTerms

from .constants import ARGUMENT_ERROR, EPOCH, METRICS, SELECTOR
from .event_hub_nodes import Readers
from .event_positions import parse_position

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.incoming_links import IncomingSender


class EventHubConnection(Amqp10Connection):
    """An ``Amqp10Connection`` whose receivers may give a position and an epoch."""

    def admit_outlet(self, link: IncomingSender, asked: Any) -> None:
        node = self.find_source(asked)
        if not isinstance(asked, Source) or not isinstance(node, Readers):
            super().admit_outlet(link, asked)
            return
        if not link.is_waiting:
            return  # the peer has detached the link in the meantime
        subscription_terms = SubscriptionTerms(name=link.name)
        node.check_outlet(self, copying=True, target=None, subscription_terms=subscription_terms)
        filters: dict[Any, Any] = dict(asked.filter or {})
        selector = filters.get(SELECTOR)
        metrics = METRICS in link.remote.desired_capabilities
        cursor = node.cursor(parse_position(selector), _epoch(link), metrics=metrics)
        source = Source(
            address=asked.address,  # unchanged, because clients compare it
            filter=None if selector is None else {SELECTOR: selector},
            default_outcome=asked.default_outcome,
            outcomes=asked.outcomes,
        )
        self.serve_outlet(
            link,
            node,
            source,
            subscription_terms,
            copying=True,
            properties=_properties(link),
            prepare=partial(node.place, cursor=cursor),
        )


def _epoch(link: IncomingSender) -> int | None:
    epoch: Any = (link.remote.properties or {}).get(EPOCH)
    if epoch is None:
        return None
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
        raise RefusedError(ARGUMENT_ERROR, f"{EPOCH} {epoch!r}: expected a number of at least 0")
    return int(epoch)


def _properties(link: IncomingSender) -> dict[Any, Any] | None:
    """Return the properties of our attach: the epoch of the peer's attach, if any."""
    epoch = (link.remote.properties or {}).get(EPOCH)
    return None if epoch is None else {EPOCH: epoch}
