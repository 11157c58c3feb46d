"""The standard as declarations: every composite, section, restricted type and definition of Parts 2 to 5.

Knows no behaviour. The registries say what may stand where; make your own of these and more.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.wire.composite import Registry

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
"""Everything that may stand inside something else."""

PERFORMATIVES: Final = Registry(
    Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close, nested=TYPES
)
"""What an AMQP frame may carry (2.7), and nothing of the SASL layer."""

SASL_PERFORMATIVES: Final = Registry(
    SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome, nested=TYPES
)
"""What a SASL frame may carry (5.3.3), and nothing of the AMQP layer."""
