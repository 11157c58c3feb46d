"""Sole connections: at most one for each container of a peer, if it asks for that.

"AMQP Enforcing Connection Uniqueness 1.0".

A peer that asks to be the sole connection of its container says what is to happen when there are two: the newcomer is refused, or what was there is closed. What the newcomer says
goes before what was said earlier. A container-id proves nothing: the containers of two users are two, whatever they
call themselves, and peers that are not authenticated have containers of their own together.

Detection is strong: all connections of a container are known here, and two are told apart before the
second is open. Knows connected peers by their interface; how a peer asks is its dialect's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from trio_amqp10.container.nodes.message_origin import user_of
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition
from trio_amqp10.peer.sole_connection_request import ENFORCED
from trio_amqp10.wire.values import Symbol

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Owner

    from .rights_holder import SolePolicy, Subject

__all__ = ["SoleConnections"]


class SoleConnections:
    """The connections of a container, by the peers' containers: who they proved to be, and what they call themselves."""

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
        """How many containers have a connection, or had one whose end was not reported."""
        return len(self._by_owner)

    def _others(self, owner: Owner) -> list[Subject]:
        found = [known() for known in self._by_owner.get(owner, ())]
        return [peer for peer in found if peer is not None and not peer.closed]

    def discard(self, peer: Subject) -> None:
        """It is over."""
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
    """Close what is in the way, or return why the newcomer is refused."""
    in_force = {other: there if policy is None else policy for other, there in others.items()}
    for each in in_force.values():
        if each == "refuse":
            return RefusedError(
                Condition.INVALID_FIELD,
                "there is a connection of this container, which is to be the only one",
                info={Symbol("invalid-field"): Symbol("container-id")},
            )
    for other, each in in_force.items():
        if each == "close-existing":
            other.close(
                Condition.RESOURCE_LOCKED.value,
                "the container has opened another connection, which is to be the only one",
                info={Symbol(ENFORCED): True},
            )
    return None
