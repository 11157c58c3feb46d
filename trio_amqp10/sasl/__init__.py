"""SASL, both sides: authentication of a peer before AMQP begins (5.3).

A client is given mechanisms with credentials (``Scram("user", "password")``, ``Anonymous()``), or uses
``default_mechanisms``; a listener is given a ``Server``. Mechanisms of your own derive from ``ClientMechanism``
and ``ServerMechanism``.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.sasl_client import SaslClient as SaslClient
    from trio_amqp10.amqp10.engine.sasl_layer import SaslState as SaslState
    from trio_amqp10.amqp10.engine.sasl_server import SaslServer as SaslServer
    from trio_amqp10.core.channel_binding import tls_server_end_point as tls_server_end_point

    from .anonymous import Anonymous as Anonymous
    from .anonymous import AnonymousServer as AnonymousServer
    from .config import Server as Server
    from .defaults import check_allowed as check_allowed
    from .defaults import default_mechanisms as default_mechanisms
    from .errors import AuthenticationError as AuthenticationError
    from .errors import NoAcceptableMechanismError as NoAcceptableMechanismError
    from .errors import PlaintextPasswordError as PlaintextPasswordError
    from .errors import SecurityDowngradeError as SecurityDowngradeError
    from .external import External as External
    from .external import ExternalServer as ExternalServer
    from .mechanism import Challenge as Challenge
    from .mechanism import ClientContext as ClientContext
    from .mechanism import ClientExchange as ClientExchange
    from .mechanism import ClientMechanism as ClientMechanism
    from .mechanism import Identity as Identity
    from .mechanism import Question as Question
    from .mechanism import Refused as Refused
    from .mechanism import Respond as Respond
    from .mechanism import ServerContext as ServerContext
    from .mechanism import ServerExchange as ServerExchange
    from .mechanism import ServerMechanism as ServerMechanism
    from .mechanism import Verified as Verified
    from .oauth import OAuthBearer as OAuthBearer
    from .oauth import OAuthBearerServer as OAuthBearerServer
    from .oauth import XOAuth2 as XOAuth2
    from .oauth import XOAuth2Server as XOAuth2Server
    from .plain import Plain as Plain
    from .plain import PlainServer as PlainServer
    from .salted_keys import Credentials as Credentials
    from .salted_keys import KeysLike as KeysLike
    from .salted_keys import ScramKeys as ScramKeys
    from .salted_keys import UserKeys as UserKeys
    from .salted_keys import derive_keys as derive_keys
    from .salted_keys import format_users as format_users
    from .salted_keys import parse_users as parse_users
    from .salted_keys import read_users as read_users
    from .salted_keys import write_users as write_users
    from .scram_client import Scram as Scram
    from .scram_server import ScramServer as ScramServer
    from .tally import Tally as Tally
else:
    from trio_amqp10.core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            "trio_amqp10.core.channel_binding": "tls_server_end_point",
            ".anonymous": "Anonymous AnonymousServer",
            "trio_amqp10.amqp10.engine.sasl_client": "SaslClient",
            ".config": "Server",
            ".salted_keys": "Credentials KeysLike ScramKeys UserKeys derive_keys format_users parse_users read_users write_users",
            ".defaults": "check_allowed default_mechanisms",
            ".errors": "AuthenticationError NoAcceptableMechanismError PlaintextPasswordError SecurityDowngradeError",
            ".external": "External ExternalServer",
            "trio_amqp10.amqp10.engine.sasl_layer": "SaslState",
            ".mechanism": "Challenge ClientContext ClientExchange ClientMechanism Identity Question Refused Respond ServerContext ServerExchange ServerMechanism Verified",
            ".oauth": "OAuthBearer OAuthBearerServer XOAuth2 XOAuth2Server",
            ".plain": "Plain PlainServer",
            ".scram_client": "Scram",
            ".scram_server": "ScramServer",
            "trio_amqp10.amqp10.engine.sasl_server": "SaslServer",
            ".tally": "Tally",
        },
    )
