"""SASL, both sides: who a peer is, before AMQP begins (5.3).

A client gives mechanisms with credentials (``Anonymous()``, ``Plain("user", "password")``); a
listener gives a ``Server``. Own mechanisms derive from ``ClientMechanism`` and ``ServerMechanism``.
"""

from .anonymous import Anonymous, AnonymousServer
from .client import SaslClient, check_allowed
from .config import Server
from .errors import (
    AuthenticationError,
    NoAcceptableMechanismError,
    PlaintextPasswordError,
    SecurityDowngradeError,
)
from .layer import SaslState
from .mechanism import (
    Challenge,
    ClientContext,
    ClientExchange,
    ClientMechanism,
    Identity,
    Question,
    Refused,
    Respond,
    ServerExchange,
    ServerMechanism,
    Verified,
)
from .plain import Plain, PlainServer
from .server import SaslServer

__all__ = [
    "Anonymous",
    "AnonymousServer",
    "AuthenticationError",
    "Challenge",
    "ClientContext",
    "ClientExchange",
    "ClientMechanism",
    "Identity",
    "NoAcceptableMechanismError",
    "Plain",
    "PlainServer",
    "PlaintextPasswordError",
    "Question",
    "Refused",
    "Respond",
    "SaslClient",
    "SaslServer",
    "SaslState",
    "SecurityDowngradeError",
    "Server",
    "ServerExchange",
    "ServerMechanism",
    "Verified",
    "check_allowed",
]
