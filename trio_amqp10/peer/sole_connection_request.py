"""Ask to be the sole connection of a container, and read the answer.

"AMQP Enforcing Connection Uniqueness 1.0" (a committee specification of OASIS). Knows no connection; who
enforces it is in ``container``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.wire.values import Symbol, UInt

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Error

    from .remote_open import Remote

__all__ = [
    "CAPABILITY",
    "CLOSE_EXISTING",
    "DETECTION",
    "ENFORCED",
    "POLICY",
    "REFUSE",
    "STRONG",
    "SolePolicy",
    "detection_of",
    "is_superseded",
    "sole_properties",
]

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
    """What ``open`` is to say; nothing where nothing is asked for.

    Raises:
        LocalProtocolError: no policy.
    """
    if policy is None:
        return {}
    if policy not in _POLICIES:
        raise LocalProtocolError(f"sole_connection={policy!r}: expected one of {', '.join(_POLICIES)}")
    return {Symbol(POLICY): UInt(_POLICIES[policy])}


def detection_of(remote: Remote) -> Literal["strong", "weak"] | None:
    """How sure a peer is that there is no other connection of our container; None for one that does not care."""
    if CAPABILITY not in remote.offered_capabilities:
        return None
    return "strong" if remote.properties.get(DETECTION, STRONG) == STRONG else "weak"


def is_superseded(error: Error) -> bool:
    """Whether a connection was closed for a newer one of the same container: coming back would close that."""
    return str(error.condition) == Condition.RESOURCE_LOCKED.value and bool((error.info or {}).get(ENFORCED))
