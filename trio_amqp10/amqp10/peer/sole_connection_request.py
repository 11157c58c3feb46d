"""Ask to be the sole connection of a container, and read the answer.

"AMQP Enforcing Connection Uniqueness 1.0" (a committee specification of OASIS). Knows no connection;
``container`` enforces the policy for peers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.amqp10.wire.values import Symbol, UInt
from trio_amqp10.core.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.transport import Error

    from .remote_open import Remote

CAPABILITY: Final = "sole-connection-for-container"
POLICY: Final = "sole-connection-enforcement-policy"
DETECTION: Final = "sole-connection-detection-policy"
ENFORCED: Final = "sole-connection-enforcement"
REFUSE: Final = 0
CLOSE_EXISTING: Final = 1
STRONG: Final = 0

SolePolicy = Literal["refuse-connection", "close-existing"]

_POLICIES: Final = {"refuse-connection": REFUSE, "close-existing": CLOSE_EXISTING}


def sole_properties(policy: SolePolicy | None) -> dict[Any, Any]:
    """Return the properties of ``open`` that ask for ``policy``; none if None.

    Raises:
        LocalProtocolError: ``policy`` is not known.
    """
    if policy is None:
        return {}
    if policy not in _POLICIES:
        raise LocalProtocolError(f"sole_connection={policy!r}: expected one of {', '.join(_POLICIES)}")
    return {Symbol(POLICY): UInt(_POLICIES[policy])}


def detection_of(remote: Remote) -> Literal["strong", "weak"] | None:
    """Return how surely a peer detects other connections of our container.

    None if the peer does not detect them.
    """
    if CAPABILITY not in remote.offered_capabilities:
        return None
    return "strong" if remote.properties.get(DETECTION, STRONG) == STRONG else "weak"


def is_superseded(error: Error) -> bool:
    """Whether a newer connection of the same container has replaced this one.

    Dialling again would close the newer one.
    """
    return str(error.condition) == Condition.RESOURCE_LOCKED.value and bool((error.info or {}).get(ENFORCED))
