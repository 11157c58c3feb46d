"""The subscription that a source asks for, and its lifetime (3.5.3, 3.5.6).

================================  =================================================================
in the attach                     the subscription
================================  =================================================================
the container-id, the link name   together are its name; without the capability ``shared``, the whole link name counts
capability ``shared``             several links may have it; its name is the part before ``|`` of the
                                  link names, because these must differ
capability ``global``             it belongs to no peer: the container-id does not count
expiry-policy ``never``           it lasts until a link to it is closed, not only detached (2.6.6)
any other, and a timeout          it lasts that many seconds after the last link has detached
durable                           it survives the process, if there is a store
property ``rabbitmq:priority``    of the link, or ``priority``: an integer; receivers of a higher one are offered messages
                                  first, receivers of the same one take turns
================================  =================================================================

The capabilities are those that Artemis and Qpid have agreed on for topics of JMS; the properties are those that
RabbitMQ 4 and Artemis read.

Knows the fields of an attach; does not know what a node holds for a subscription.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, TerminusDurability
from trio_amqp10.broker.nodes.node import Owner, SubscriptionTerms

from .selection import Filters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.amqp10.filters import FilterSet
    from trio_amqp10.amqp10.spec.messaging import Source

SHARED: Final = "shared"
GLOBAL: Final = "global"


_PRIORITIES: Final = ("rabbitmq:priority", "priority")
_MOST: Final = 2**31


def subscription_terms_of(
    peer: Owner,
    link_name: str,
    asked: Source,
    filters: FilterSet,
    properties: Mapping[Any, Any] | None = None,
) -> SubscriptionTerms:
    """Return the terms that the link of this name, source and properties asks for."""
    wishes = {str(each) for each in asked.capabilities}
    shared = SHARED in wishes
    owner, name = owner_and_name(peer, link_name, wishes)
    return SubscriptionTerms(
        name=name if shared else link_name,
        owner=owner if shared else peer,
        shared=shared,
        lasting=math.inf if asked.expiry_policy == ExpiryPolicy.NEVER else float(asked.timeout),
        durable=asked.durable != TerminusDurability.NONE,
        selection=Filters(filters.echo),
        priority=_priority(properties or {}),
    )


def _priority(properties: Mapping[Any, Any]) -> int:
    """Return the priority that a link asks for; 0 if it is no integer of 32 bits."""
    for name in _PRIORITIES:
        value = properties.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value < _MOST:
            return int(value)
    return 0


def owner_and_name(peer: Owner, link_name: str, wishes: set[str] | Sequence[str]) -> tuple[Owner | None, str]:
    """Return the owner of a shared subscription, None if it is global, and its name."""
    return None if GLOBAL in wishes else peer, link_name.partition("|")[0]


def expiry_fields(subscription_terms: SubscriptionTerms | None) -> dict[str, Any]:
    """Return the fields of a source that contain how long a subscription lasts.

    ``subscription_terms`` is None for a link that leaves nothing behind.
    """
    if subscription_terms is None or not subscription_terms.lasting:
        return {"expiry_policy": ExpiryPolicy.LINK_DETACH}
    durable = TerminusDurability.UNSETTLED_STATE if subscription_terms.durable else TerminusDurability.NONE
    if subscription_terms.lasting == math.inf:
        return {"durable": durable, "expiry_policy": ExpiryPolicy.NEVER}
    return {
        "durable": durable,
        "expiry_policy": ExpiryPolicy.LINK_DETACH,
        "timeout": int(subscription_terms.lasting),
    }
