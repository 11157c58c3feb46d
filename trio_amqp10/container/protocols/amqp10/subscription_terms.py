"""Which subscription a source asks for, and how long it lasts (3.5.3, 3.5.6).

================================  =================================================================
in the attach                     the subscription
================================  =================================================================
the container-id, the link name   name it; without the capability ``shared`` the whole name does
capability ``shared``             several links may have it; it is named by what comes before ``|`` in
                                  their names, as their names have to differ
capability ``global``             it belongs to no peer: the container-id does not count
expiry-policy ``never``           it stays until a link to it is closed, not only detached (2.6.6)
any other, and a timeout          it stays so many seconds after the last link has detached
durable                           it survives the process, where there is a store
property ``rabbitmq:priority``    of the link, or ``priority``: an integer; receivers of a higher one are offered messages
                                  first, those of the same take turns
================================  =================================================================

The capabilities are those that Artemis and Qpid have agreed on for topics of JMS; the properties are those that RabbitMQ 4 and
Artemis read.

Knows the fields of an attach; does not know what a node holds for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import Owner, SubscriptionTerms
from trio_amqp10.container.protocols.amqp10.selection import Filters
from trio_amqp10.spec.messaging import ExpiryPolicy, TerminusDurability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.filters import FilterSet
    from trio_amqp10.spec.messaging import Source

__all__ = ["GLOBAL", "SHARED", "expiry_fields", "owner_and_name", "subscription_terms_of"]

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
    """What the link of this name, source and properties asks for."""
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
    """The priority that a link names; 0 if that is no integer of 32 bits."""
    for name in _PRIORITIES:
        value = properties.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value < _MOST:
            return int(value)
    return 0


def owner_and_name(peer: Owner, link_name: str, wishes: set[str] | Sequence[str]) -> tuple[Owner | None, str]:
    """Whose a shared subscription is, and its name."""
    return None if GLOBAL in wishes else peer, link_name.partition("|")[0]


def expiry_fields(subscription_terms: SubscriptionTerms | None) -> dict[str, Any]:
    """The fields of a source that say how long it stays; None for a link that leaves nothing behind."""
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
