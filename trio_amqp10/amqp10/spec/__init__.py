"""The declarations of the standard: all types of Parts 2 to 5.

They are composites, sections, restricted types and definitions, without behaviour. The registries define the types that are
allowed in each place; a program can build its own registries from these and further types.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.amqp10.wire.composite import Registry

from .messaging import (
    Accepted,
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Target,
)
from .security import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from .transactions import Coordinator, Declare, Declared, Discharge, TransactionalState
from .transport import Attach, Begin, Close, Detach, Disposition, End, Error, Flow, Open, Transfer

__all__ = ["PERFORMATIVES", "SASL_PERFORMATIVES", "TYPES"]

TYPES: Final = Registry(
    Error,
    Received,
    Accepted,
    Rejected,
    Released,
    Modified,
    Source,
    Target,
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoMessages,
    DeleteOnNoLinksOrMessages,
    Coordinator,
    Declare,
    Discharge,
    Declared,
    TransactionalState,
)
"""The types that are allowed inside of other values."""

PERFORMATIVES: Final = Registry(
    Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close, nested=TYPES
)
"""The types that an AMQP frame may contain (2.7); none of the SASL layer."""

SASL_PERFORMATIVES: Final = Registry(
    SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome, nested=TYPES
)
"""The types that a SASL frame may contain (5.3.3); none of the AMQP layer."""
