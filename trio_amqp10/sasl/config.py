"""The authentication that a listener requires of its clients (5.3).

Knows which mechanisms are permitted on which transport; runs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import urandom
from typing import TYPE_CHECKING, cast

from trio_amqp10.core.errors import LocalProtocolError

from .anonymous import AnonymousServer
from .mechanism import NOTHING_KNOWN, check_name
from .plain import PlainServer
from .salted_keys import DEFAULT_MECHANISMS, SECRET_SIZE, Credentials
from .scram_messages import PLUS
from .scram_server import PasswordKeys, ScramServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from .mechanism import ServerContext, ServerMechanism
    from .salted_keys import UserKeys


class Server:
    """The way in which a listener authenticates its clients.

    Without users, every client may connect: with ANONYMOUS, or without a SASL layer. With users (or
    ``verify``, ``credentials``, or ``mechanisms``) both are refused, unless ``anonymous=True``
    offers ANONYMOUS too.

    Args:
        users: passwords by user name, for SCRAM and PLAIN. The names must be prepared (RFC 4013);
            all names in ASCII are.
        verify: an async function that takes a user name and a password and returns True if they
            belong together, for PLAIN; cannot be combined with ``users``. If it raises, the outcome is
            ``sys``.
        credentials: salted keys, for SCRAM: a mapping such as ``Credentials``, or an async function
            that takes a user name and returns keys by mechanism, or None; cannot be combined with ``users``.
        anonymous: whether to offer ANONYMOUS; None: only if no other mechanism is offered.
        mechanisms: further mechanisms, best first; they are offered before SCRAM and PLAIN.
        scram: the SCRAM mechanisms to offer, best first; ``-PLUS`` is added to each automatically. None:
            SHA-512 and SHA-256, but of a mapping of ``credentials`` only those that all users have keys for.
        secret: the source of made-up salts, at least 16 octets; see ``ScramServer``. None: that of
            ``Credentials``, or a new one.

    Raises:
        LocalProtocolError: ``users`` with ``verify`` or ``credentials``, two mechanisms of one name, a
            SCRAM mechanism that is unknown or that not all credentials have, or no client could connect.
    """

    __slots__ = ("_anonymous", "_credentials", "_mechanisms", "_scram", "_users", "_verify")

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        verify: Callable[[str, str], Awaitable[bool]] | None = None,
        credentials: Mapping[str, UserKeys] | Callable[[str], Awaitable[UserKeys | None]] | None = None,
        anonymous: bool | None = None,
        mechanisms: Sequence[ServerMechanism] = (),
        scram: Sequence[str] | None = None,
        secret: bytes | None = None,
    ) -> None:
        if users is not None and (verify is not None or credentials is not None):
            raise LocalProtocolError(
                "users cannot be combined with verify or credentials: leave out users, or both of the others"
            )
        self._users = users
        self._verify = verify
        self._credentials = credentials
        self._mechanisms = tuple(mechanisms)
        self._scram = self._make_scram(scram, secret)
        self._anonymous = not self.requires_sasl if anonymous is None else anonymous
        names = [check_name(mechanism.name) for mechanism in self._permitted(True)]
        if not names:
            raise LocalProtocolError(
                "no client could connect: set users, verify, credentials, mechanisms or anonymous=True"
            )
        if len(names) != len(set(names)):
            raise LocalProtocolError(f"a mechanism is offered twice: {', '.join(names)}")

    @property
    def known_users(self) -> tuple[str, ...]:
        """The names of the users, as far as they are in a mapping."""
        if isinstance(self._credentials, Mapping):
            return tuple(cast("Mapping[str, object]", self._credentials))
        return () if self._users is None else tuple(self._users)

    def _make_scram(self, names: Sequence[str] | None, secret: bytes | None) -> tuple[ServerMechanism, ...]:
        if self._users is None and self._credentials is None:
            return ()
        if secret is None:
            kept = self._credentials.secret if isinstance(self._credentials, Credentials) else None
            secret = urandom(SECRET_SIZE) if kept is None else kept
        keys = PasswordKeys(self._users, secret) if self._users is not None else self._credentials
        assert keys is not None
        shared = _shared(DEFAULT_MECHANISMS if names is None else names, self._credentials)
        if not shared or (names is not None and len(shared) < len(names)):
            raise LocalProtocolError(
                "some users in the credentials lack keys for a SCRAM mechanism that is offered: set scram=[...]"
            )
        # All with -PLUS come first, so that clients that use our order prefer them.
        return tuple(ScramServer(name + plus, keys, secret=secret) for plus in (PLUS, "") for name in shared)

    def replace_by(self, other: Server) -> None:
        """Use the settings of ``other`` from now on, e.g. after a change of users.

        Exchanges that have begun, and existing connections, continue.

        Args:
            other: may also be used independently.
        """
        self._users = other._users
        self._verify = other._verify
        self._credentials = other._credentials
        self._mechanisms = other._mechanisms
        self._scram = other._scram
        self._anonymous = other._anonymous

    @property
    def requires_sasl(self) -> bool:
        """Whether a client without a SASL layer must be refused (2.2)."""
        return bool(self._scram) or self._verify is not None or bool(self._mechanisms)

    def offer(
        self,
        secure: bool,
        allow_plaintext_password: bool = False,
        context: ServerContext = NOTHING_KNOWN,
    ) -> list[ServerMechanism]:
        """Return the mechanisms to offer on one transport, best first.

        Args:
            secure: whether no third party can read the octets: TLS, or a peer on loopback, a Unix socket or in memory.
            allow_plaintext_password: offer mechanisms that need secrecy even if ``secure`` is False.
            context: the data of the connection below; give the same to ``SaslServer``.

        Returns:
            Mechanisms for ``SaslServer``. The list is empty if all mechanisms need secrecy and the transport has
            none: such a client must be pointed at TLS (2.2).
        """
        permitted = self._permitted(secure or allow_plaintext_password)
        return [mechanism for mechanism in permitted if mechanism.usable(context)]

    def _permitted(self, permitted: bool) -> list[ServerMechanism]:
        offered = [mechanism for mechanism in self._mechanisms if permitted or not mechanism.needs_secrecy]
        offered += self._scram
        if permitted and (self._users is not None or self._verify is not None):
            offered.append(PlainServer(self._users, verify=self._verify, permitted=permitted))
        if self._anonymous:
            offered.append(AnonymousServer())
        return offered

    def __repr__(self) -> str:
        parts = [type(mechanism).__name__ for mechanism in self._mechanisms]
        if self._users is not None:
            parts.append(f"{len(self._users)} users")
        if self._verify is not None:
            parts.append("verify")
        if self._credentials is not None:
            parts.append("credentials")
        if self._anonymous:
            parts.append("anonymous")
        return f"<sasl.Server: {', '.join(parts)}>"


def _shared(names: Sequence[str], credentials: object) -> list[str]:
    """Return the ``names`` for which every user has keys, if users can be counted."""
    if not isinstance(credentials, Mapping):
        return list(names)
    users = cast("Mapping[str, UserKeys]", credentials).values()
    return [name for name in names if all(name in keys for keys in users)]
