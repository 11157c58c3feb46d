"""The types of Part 5: the SASL frames (5.3.3), and the versions of the security layers. Declarations only."""

from enum import IntEnum
from typing import Final

from trio_amqp10.wire.composite import composite
from trio_amqp10.wire.fields import Multiple, binary, restricted, string, symbol

__all__ = [
    "SASL_MAJOR",
    "SASL_MINOR",
    "SASL_REVISION",
    "TLS_MAJOR",
    "TLS_MINOR",
    "TLS_REVISION",
    "SaslChallenge",
    "SaslCode",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
]

TLS_MAJOR: Final = 1
TLS_MINOR: Final = 0
TLS_REVISION: Final = 0


@restricted("sasl-code", "ubyte")
class SaslCode(IntEnum):
    """How a SASL exchange ended (5.3.3.6)."""

    OK = 0
    AUTH = 1
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4


@composite("amqp:sasl-mechanisms:list", 0x40, provides=["sasl-frame"])
class SaslMechanisms:
    """What the server offers, best first (5.3.3.1)."""

    sasl_server_mechanisms: Multiple[symbol]


@composite("amqp:sasl-init:list", 0x41, provides=["sasl-frame"])
class SaslInit:
    """The client's choice (5.3.3.2)."""

    mechanism: symbol
    initial_response: binary | None = None
    hostname: string | None = None


@composite("amqp:sasl-challenge:list", 0x42, provides=["sasl-frame"])
class SaslChallenge:
    """The server asks (5.3.3.3)."""

    challenge: binary


@composite("amqp:sasl-response:list", 0x43, provides=["sasl-frame"])
class SaslResponse:
    """The client answers (5.3.3.4)."""

    response: binary


@composite("amqp:sasl-outcome:list", 0x44, provides=["sasl-frame"])
class SaslOutcome:
    """The server ends the exchange (5.3.3.5)."""

    code: SaslCode
    additional_data: binary | None = None


SASL_MAJOR: Final = 1
SASL_MINOR: Final = 0
SASL_REVISION: Final = 0
