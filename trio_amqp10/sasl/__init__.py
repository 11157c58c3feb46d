"""SASL, both sides: who a peer is, before AMQP begins (5.3).

A client gives mechanisms with credentials (``Scram("user", "password")``, ``Anonymous()``), or takes
``default_mechanisms``; a listener gives a ``Server``. Own mechanisms derive from ``ClientMechanism``
and ``ServerMechanism``.
"""

from trio_amqp10.channel_binding import tls_server_end_point

from .anonymous import Anonymous, AnonymousServer
from .client import SaslClient, check_allowed
from .config import Server
from .credentials import (
    Credentials,
    KeysLike,
    ScramKeys,
    UserKeys,
    derive_keys,
    format_users,
    parse_users,
    read_users,
    write_users,
)
from .defaults import default_mechanisms
from .errors import (
    AuthenticationError,
    NoAcceptableMechanismError,
    PlaintextPasswordError,
    SecurityDowngradeError,
)
from .external import External, ExternalServer
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
    ServerContext,
    ServerExchange,
    ServerMechanism,
    Verified,
)
from .oauth import OAuthBearer, OAuthBearerServer, XOAuth2, XOAuth2Server
from .plain import Plain, PlainServer
from .scram_client import Scram
from .scram_server import ScramServer
from .server import SaslServer, Tally

__all__ = [
    "Anonymous",
    "AnonymousServer",
    "AuthenticationError",
    "Challenge",
    "ClientContext",
    "ClientExchange",
    "ClientMechanism",
    "Credentials",
    "External",
    "ExternalServer",
    "Identity",
    "KeysLike",
    "NoAcceptableMechanismError",
    "OAuthBearer",
    "OAuthBearerServer",
    "Plain",
    "PlainServer",
    "PlaintextPasswordError",
    "Question",
    "Refused",
    "Respond",
    "SaslClient",
    "SaslServer",
    "SaslState",
    "Scram",
    "ScramKeys",
    "ScramServer",
    "SecurityDowngradeError",
    "Server",
    "ServerContext",
    "ServerExchange",
    "ServerMechanism",
    "Tally",
    "UserKeys",
    "Verified",
    "XOAuth2",
    "XOAuth2Server",
    "check_allowed",
    "default_mechanisms",
    "derive_keys",
    "format_users",
    "parse_users",
    "read_users",
    "tls_server_end_point",
    "write_users",
]
