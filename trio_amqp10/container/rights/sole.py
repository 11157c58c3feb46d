"""One connection for each container of a peer, where a peer asks for that ("AMQP Enforcing Connection Uniqueness 1.0").

A peer that desires ``sole-connection-for-container`` says in the properties of its ``open`` what is to
happen when there are two: the newcomer is refused, or what was there is closed. What the newcomer says
goes before what was said earlier. A container-id proves nothing: the containers of two users are two, whatever they
call themselves, and peers that are not authenticated have containers of their own together.

Detection is strong: all connections of a container are known here, and two are told apart before the
second is open. Knows no nodes and no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, ref

from trio_amqp10.container.nodes.origins import user_of
from trio_amqp10.errors import Condition
from trio_amqp10.peer.sole import CAPABILITY, CLOSE_EXISTING, DETECTION, ENFORCED, POLICY, REFUSE, STRONG
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.values import Symbol, UInt

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Owner
    from trio_amqp10.peer.connection import Connection

__all__ = ["SoleConnections", "answer"]

_POLICIES: Final = (REFUSE, CLOSE_EXISTING)


class SoleConnections:
    """The connections of a container, by the peers' containers: who they proved to be, and what they call themselves."""

    def __init__(self) -> None:
        self._by_owner: dict[Owner, list[ref[Connection]]] = {}
        self._policies: WeakKeyDictionary[Connection, int | None] = WeakKeyDictionary()

    def admit(self, connection: Connection) -> Error | None:
        """Remember a connection that the peer has opened, or say why it is refused."""
        if connection in self._policies:
            return None
        remote = connection.remote
        policy: int | None = None
        if CAPABILITY in remote.desired_capabilities:
            policy = remote.properties.get(POLICY, REFUSE)
            if policy not in _POLICIES:
                return Error(
                    condition=Condition.INVALID_FIELD.value,
                    description=f"{POLICY} is 0 or 1",
                    info={Symbol("invalid-field"): Symbol("properties")},
                )
        owner = _owner_of(connection)
        others = self._others(owner)
        error = _refusal(policy, {other: self._policies.get(other) for other in others})
        if error is not None:
            return error
        known = self._by_owner.setdefault(owner, [])
        known.append(ref(connection, lambda gone: self._forget(owner, gone)))
        self._policies[connection] = policy
        return None

    def __len__(self) -> int:
        """How many containers have a connection, or had one that nobody has told the end of."""
        return len(self._by_owner)

    def _others(self, owner: Owner) -> list[Connection]:
        found = [known() for known in self._by_owner.get(owner, ())]
        return [connection for connection in found if connection is not None and not connection.closed]

    def discard(self, connection: Connection) -> None:
        """It is over."""
        self._policies.pop(connection, None)
        self._forget(_owner_of(connection), ref(connection))

    def _forget(self, owner: Owner, gone: ref[Connection]) -> None:
        left = [known for known in self._by_owner.get(owner, ()) if known != gone]
        if left:
            self._by_owner[owner] = left
        else:
            self._by_owner.pop(owner, None)


def _owner_of(connection: Connection) -> Owner:
    return connection.remote.container_id, user_of(connection.identity)


def answer(connection: Connection) -> None:
    """Tell a peer that asked, in our open, how sure it can be."""
    if CAPABILITY in connection.remote.desired_capabilities:
        connection.engine.introduce(properties={Symbol(DETECTION): UInt(STRONG)})


def _refusal(policy: int | None, others: dict[Connection, int | None]) -> Error | None:
    """Close what is in the way, or say why the newcomer is refused."""
    in_force = {other: there if policy is None else policy for other, there in others.items()}
    for each in in_force.values():
        if each == REFUSE:
            return Error(
                condition=Condition.INVALID_FIELD.value,
                description="there is a connection of this container, which is to be the only one",
                info={Symbol("invalid-field"): Symbol("container-id")},
            )
    for other, each in in_force.items():
        if each == CLOSE_EXISTING:
            other.close_now(
                Error(
                    condition=Condition.RESOURCE_LOCKED.value,
                    description="the container has opened another connection, which is to be the only one",
                    info={Symbol(ENFORCED): True},
                )
            )
    return None
