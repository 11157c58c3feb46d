"""The SASL frames of the draft of 2010 (Book VI, 3). Declarations only.

The codes of sasl-init, sasl-response and sasl-outcome are chosen by analogy, because no source has them.
"""

from trio_amqp10.amqp10.draft_2010.field_types import Options
from trio_amqp10.amqp10.spec.security import SaslCode
from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import binary, string

from .transport import DOMAIN, Strings


@composite("amqp:sasl-mechanisms:list", DOMAIN | 0x400, provides=["sasl-frame"])
class SaslMechanisms:
    """The mechanisms that the server offers, best first (3.3)."""

    options: Options | None = None
    sasl_server_mechanisms: Strings = ()


@composite("amqp:sasl-init:list", DOMAIN | 0x401, provides=["sasl-frame"])
class SaslInit:
    """The client's choice of a mechanism (3.4)."""

    options: Options | None = None
    mechanism: string
    initial_response: binary | None = None


@composite("amqp:sasl-challenge:list", DOMAIN | 0x402, provides=["sasl-frame"])
class SaslChallenge:
    """A challenge of the server (3.5)."""

    options: Options | None = None
    challenge: binary


@composite("amqp:sasl-response:list", DOMAIN | 0x403, provides=["sasl-frame"])
class SaslResponse:
    """The client's response to a challenge (3.6)."""

    options: Options | None = None
    response: binary


@composite("amqp:sasl-outcome:list", DOMAIN | 0x404, provides=["sasl-frame"])
class SaslOutcome:
    """The end of the exchange, from the server (3.7)."""

    options: Options | None = None
    code: SaslCode | None = None
    additional_data: binary | None = None
