"""One connection for each container of a peer, where a peer asks for that ("AMQP Enforcing Connection Uniqueness 1.0").

A peer that desires ``sole-connection-for-container`` says in the properties of its ``open`` what is to
happen when there are two: the newcomer is refused, or what was there is closed. What the newcomer says
goes before what was said earlier. Names of containers are not proved, so nobody's connection is closed
for somebody of another name, or of none where there is one: then the newcomer is refused.

Detection is strong: all connections of a container are known here, and two are told apart before the
second is open. Knows no nodes and no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, ref

from trio_amqp10.errors import Condition
from trio_amqp10.peer.sole import CAPABILITY, CLOSE_EXISTING, DETECTION, ENFORCED, POLICY, REFUSE, STRONG
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.values import Symbol, UInt

from .access import user_of

if TYPE_CHECKING:
    from trio_amqp10.peer.connection import Connection

__all__ = ["SoleConnections", "answer"]

_POLICIES: Final = (REFUSE, CLOSE_EXISTING)


class SoleConnections:
    """The connections of a container, by the names that the peers' containers gave themselves."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[ref[Connection]]] = {}
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
        others = self._others(remote.container_id)
        error = _refusal(connection, policy, {other: self._policies.get(other) for other in others})
        if error is not None:
            return error
        known = self._by_id.setdefault(remote.container_id, [])
        known.append(ref(connection, lambda gone: self._forget(remote.container_id, gone)))
        self._policies[connection] = policy
        return None

    def __len__(self) -> int:
        """How many containers have a connection, or had one that nobody has told the end of."""
        return len(self._by_id)

    def _others(self, container_id: str) -> list[Connection]:
        found = [known() for known in self._by_id.get(container_id, ())]
        return [connection for connection in found if connection is not None and not connection.closed]

    def discard(self, connection: Connection) -> None:
        """It is over."""
        self._policies.pop(connection, None)
        self._forget(connection.remote.container_id, ref(connection))

    def _forget(self, container_id: str, gone: ref[Connection]) -> None:
        left = [known for known in self._by_id.get(container_id, ()) if known != gone]
        if left:
            self._by_id[container_id] = left
        else:
            self._by_id.pop(container_id, None)


def answer(connection: Connection) -> None:
    """Tell a peer that asked, in our open, how sure it can be."""
    if CAPABILITY in connection.remote.desired_capabilities:
        connection.engine.introduce(properties={Symbol(DETECTION): UInt(STRONG)})


def _refusal(
    connection: Connection, policy: int | None, others: dict[Connection, int | None]
) -> Error | None:
    """Close what is in the way, or say why the newcomer is refused."""
    in_force = {other: there if policy is None else policy for other, there in others.items()}
    for other, each in in_force.items():
        if each == REFUSE or (each is not None and user_of(other.identity) != user_of(connection.identity)):
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
