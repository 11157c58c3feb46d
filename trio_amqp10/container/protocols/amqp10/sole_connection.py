"""How a peer asks to be the sole connection of its container, and is answered.

"AMQP Enforcing Connection Uniqueness 1.0". Knows capabilities and properties; ``rights.sole`` enforces it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition
from trio_amqp10.peer.sole_connection_request import (
    CAPABILITY,
    CLOSE_EXISTING,
    DETECTION,
    POLICY,
    REFUSE,
    STRONG,
)
from trio_amqp10.wire.values import Symbol, UInt

if TYPE_CHECKING:
    from trio_amqp10.container.rights.rights_holder import SolePolicy
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.peer.remote_open import Remote

__all__ = ["answer", "sole_policy_of"]

_POLICIES: Final[dict[Any, SolePolicy]] = {REFUSE: "refuse", CLOSE_EXISTING: "close-existing"}


def sole_policy_of(remote: Remote) -> SolePolicy | None:
    """What the peer asks for; None if it does not ask.

    Raises:
        RefusedError: ``amqp:invalid-field``, for a policy that there is not.
    """
    if CAPABILITY not in remote.desired_capabilities:
        return None
    asked = remote.properties.get(POLICY, REFUSE)
    policy = _POLICIES.get(asked) if isinstance(asked, int) else None
    if policy is None:
        raise RefusedError(
            Condition.INVALID_FIELD,
            f"{POLICY} is 0 or 1",
            info={Symbol("invalid-field"): Symbol("properties")},
        )
    return policy


def answer(connection: Connection) -> None:
    """Tell a peer that asked, in our open, how sure it can be."""
    if CAPABILITY in connection.remote.desired_capabilities:
        connection.engine.introduce(properties={Symbol(DETECTION): UInt(STRONG)})
