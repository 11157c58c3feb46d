"""Declarations of Part 5: SASL frames (5.3.3), and versions of security layers."""

from typing import Final

from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import Multiple, binary, restricted, string, symbol
from trio_amqp10.sasl.codes import SaslCode

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


restricted("sasl-code", "ubyte")(SaslCode)


@composite("amqp:sasl-mechanisms:list", 0x40, provides=["sasl-frame"])
class SaslMechanisms:
    """The mechanisms that the server offers, best first (5.3.3.1)."""

    sasl_server_mechanisms: Multiple[symbol]


@composite("amqp:sasl-init:list", 0x41, provides=["sasl-frame"])
class SaslInit:
    """The client's choice of a mechanism (5.3.3.2)."""

    mechanism: symbol
    initial_response: binary | None = None
    hostname: string | None = None


@composite("amqp:sasl-challenge:list", 0x42, provides=["sasl-frame"])
class SaslChallenge:
    """A challenge of the server (5.3.3.3)."""

    challenge: binary


@composite("amqp:sasl-response:list", 0x43, provides=["sasl-frame"])
class SaslResponse:
    """The client's response to a challenge (5.3.3.4)."""

    response: binary


@composite("amqp:sasl-outcome:list", 0x44, provides=["sasl-frame"])
class SaslOutcome:
    """The server's result of the exchange (5.3.3.5)."""

    code: SaslCode
    additional_data: binary | None = None


SASL_MAJOR: Final = 1
SASL_MINOR: Final = 0
SASL_REVISION: Final = 0
