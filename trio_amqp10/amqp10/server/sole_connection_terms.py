"""The request of a peer to be the sole connection of its container.

"AMQP Enforcing Connection Uniqueness 1.0". Knows capabilities and properties; ``amqp10.server.sole_connection``
enforces the policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.peer.sole_connection_request import (
    CAPABILITY,
    CLOSE_EXISTING,
    DETECTION,
    POLICY,
    REFUSE,
    STRONG,
)
from trio_amqp10.amqp10.wire.values import Symbol, UInt
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.remote_open import Remote
    from trio_amqp10.broker.rights.rights_holder import SolePolicy

_POLICIES: Final[dict[Any, SolePolicy]] = {REFUSE: "refuse", CLOSE_EXISTING: "close-existing"}


def sole_policy_of(remote: Remote) -> SolePolicy | None:
    """Return the policy that the peer asks for; None if it does not ask.

    Raises:
        RefusedError: ``amqp:invalid-field``, for an unknown policy.
    """
    if CAPABILITY not in remote.desired_capabilities:
        return None
    asked = remote.properties.get(POLICY, REFUSE)
    policy = _POLICIES.get(asked) if isinstance(asked, int) else None
    if policy is None:
        raise RefusedError(
            Condition.INVALID_FIELD,
            f"{POLICY}={asked!r:.40}: expected 0 (refuse) or 1 (close existing)",
            info={Symbol("invalid-field"): Symbol("properties")},
        )
    return policy


def answer(connection: Connection) -> None:
    """Report the detection policy in the container's ``open`` to a peer that asked."""
    if CAPABILITY in connection.remote.desired_capabilities:
        connection.engine.introduce(properties={Symbol(DETECTION): UInt(STRONG)})
