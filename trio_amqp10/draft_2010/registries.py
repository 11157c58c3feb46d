"""Which types of the draft of 2010 may stand where, and their octets.

Knows no behaviour, and nothing of what a type means.
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.protocol_rules import PAYLOAD
from trio_amqp10.wire.composite import PERFORMATIVE_NODES, Registry
from trio_amqp10.wire.decode_budget import Budget
from trio_amqp10.wire.encode import encode

from .encodings import from_draft, to_draft
from .spec import messaging, security, transactions, transport

__all__ = ["FRAME_BODIES", "SASL_FRAME_BODIES", "TYPES", "read", "write"]

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
"""Everything that may stand inside something else."""

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
"""What an AMQP frame may carry (Book III, 7)."""

SASL_FRAME_BODIES: Final = Registry(
    security.SaslMechanisms,
    security.SaslInit,
    security.SaslChallenge,
    security.SaslResponse,
    security.SaslOutcome,
    nested=TYPES,
)
"""What a frame of the SASL layer may carry (Book VI, 3.2)."""


def read(
    octets: bytes, registry: Registry = FRAME_BODIES, *, strict: bool = False, budget: Budget | None = None
) -> Any:
    """The one composite of ``registry`` that these octets are.

    Args:
        octets: a composite of the draft, whole.
        registry: what it may be.
        strict: whether encodings that only the final standard has are refused.
        budget: what it may cost, 1,024 values unless given.

    Raises:
        RemoteProtocolError: as ``Registry.decode``; also for octets behind the composite.
    """
    if budget is None:
        budget = Budget(PERFORMATIVE_NODES)
    final = from_draft(octets, strict=strict)
    value, end = registry.decode(final, 0, budget)
    if end != len(final):
        raise PAYLOAD.broken(f"{len(final) - end} octets behind {type(value).__name__.lower()}")
    return value


def write(value: Any) -> bytes:
    """The octets of a composite, or of any value, in encodings that the draft has.

    Raises:
        LocalProtocolError: as ``wire.encode.encode``.
    """
    return to_draft(encode(value))
