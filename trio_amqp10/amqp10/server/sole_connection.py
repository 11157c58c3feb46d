"""Sole connections: at most one for each container of a peer, if it asks for that.

"AMQP Enforcing Connection Uniqueness 1.0".

A peer that asks to be the sole connection of its container chooses what happens when there are two: the new connection
is refused, or the old one is closed. The choice of the new connection takes precedence over earlier ones. A
container-id proves nothing: containers of different users are different, whatever their ids, and all peers that are
not authenticated count as one user.

Detection is strong: all connections of a container are known here, and a second one is detected before it
is open. Knows connected peers by their interface; how a peer asks depends on its dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from trio_amqp10.amqp10.peer.sole_connection_request import ENFORCED
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import Owner
    from trio_amqp10.broker.rights.rights_holder import SolePolicy, Subject


class SoleConnections:
    """The connections of a container, by the user and container-id of each peer."""

    def __init__(self) -> None:
        self._by_owner: dict[Owner, list[ref[Subject]]] = {}
        self._policies: WeakKeyDictionary[Subject, SolePolicy | None] = WeakKeyDictionary()

    def admit(self, peer: Subject) -> RefusedError | None:
        """Remember a peer that has connected, or return why it is refused."""
        if peer in self._policies:
            return None
        try:
            policy = peer.sole
        except RefusedError as fault:
            return fault
        owner = _owner_of(peer)
        others = self._others(owner)
        refusal = _refusal(policy, {other: self._policies.get(other) for other in others})
        if refusal is not None:
            return refusal
        known = self._by_owner.setdefault(owner, [])
        known.append(ref(peer, lambda gone: self._forget(owner, gone)))
        self._policies[peer] = policy
        return None

    def __len__(self) -> int:
        """The number of peers' containers with a connection that was not discarded."""
        return len(self._by_owner)

    def _others(self, owner: Owner) -> list[Subject]:
        found = [known() for known in self._by_owner.get(owner, ())]
        return [peer for peer in found if peer is not None and not peer.closed]

    def discard(self, peer: Subject) -> None:
        """Forget a connection that is over."""
        self._policies.pop(peer, None)
        self._forget(_owner_of(peer), ref(peer))

    def _forget(self, owner: Owner, gone: ref[Subject]) -> None:
        left = [known for known in self._by_owner.get(owner, ()) if known != gone]
        if left:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)


def _owner_of(peer: Subject) -> Owner:
    return peer.container_id, user_of(peer.identity)


def _refusal(policy: SolePolicy | None, others: dict[Subject, SolePolicy | None]) -> RefusedError | None:
    """Close the connections that are in the way, or return why the peer is refused."""
    in_force = {other: there if policy is None else policy for other, there in others.items()}
    for each in in_force.values():
        if each == "refuse":
            return RefusedError(
                Condition.INVALID_FIELD,
                "this container-id has a connection already, and may have only one",
                info={Symbol("invalid-field"): Symbol("container-id")},
            )
    for other, each in in_force.items():
        if each == "close-existing":
            other.close(
                Condition.RESOURCE_LOCKED.value,
                "this container-id has opened another connection, and may have only one",
                info={Symbol(ENFORCED): True},
            )
    return None
