"""The types of the draft that may occur in each place, and their octets.

Knows no behaviour, and no meaning of a type.
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.amqp10.wire.composite import PERFORMATIVE_NODES, Registry
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.peer_rules import PAYLOAD

from .encodings import from_draft, to_draft
from .spec import messaging, security, transactions, transport

TYPES: Final = Registry(
    transport.Error,
    transport.Linkage,
    transport.FlowState,
    transport.Extent,
    transport.Fragment,
    messaging.Header,
    messaging.MessageProperties,
    messaging.Footer,
    messaging.TransferState,
    messaging.Accepted,
    messaging.Rejected,
    messaging.Released,
    messaging.Modified,
    messaging.Source,
    messaging.Target,
    messaging.Filter,
    *messaging.LIFETIMES,
    transactions.Coordinator,
    transactions.Declare,
    transactions.Discharge,
)
"""All types that may occur inside of others."""

FRAME_BODIES: Final = Registry(
    transport.Open,
    transport.Begin,
    transport.Attach,
    transport.Flow,
    transport.Transfer,
    transport.Disposition,
    transport.Detach,
    transport.End,
    transport.Close,
    nested=TYPES,
)
"""The bodies of AMQP frames (Book III, 7)."""

SASL_FRAME_BODIES: Final = Registry(
    security.SaslMechanisms,
    security.SaslInit,
    security.SaslChallenge,
    security.SaslResponse,
    security.SaslOutcome,
    nested=TYPES,
)
"""The bodies of SASL frames (Book VI, 3.2)."""


def read(
    octets: bytes, registry: Registry = FRAME_BODIES, *, strict: bool = False, budget: Budget | None = None
) -> Any:
    """Return the composite in these octets.

    Args:
        octets: a composite of the draft, whole.
        registry: the types that it may have.
        strict: whether encodings that only the final standard has are refused.
        budget: how many values it may have; 1,024 unless given.

    Raises:
        RemoteProtocolError: as ``Registry.decode``; also for octets after the composite.
    """
    if budget is None:
        budget = Budget(PERFORMATIVE_NODES)
    final = from_draft(octets, strict=strict)
    value, end = registry.decode(final, 0, budget)
    if end != len(final):
        raise PAYLOAD.broken(f"{len(final) - end} octets after {type(value).__name__.lower()}")
    return value


def write(value: Any) -> bytes:
    """Return the octets of any value, in encodings of the draft.

    Raises:
        LocalProtocolError: as ``wire.encode.encode``.
    """
    return to_draft(encode(value))
