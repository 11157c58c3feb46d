"""What a listener asks of those who connect, as a value (5.3).

Knows which mechanisms go with which transport; runs none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import urandom
from typing import TYPE_CHECKING, cast

from trio_amqp10.errors import LocalProtocolError

from .anonymous import AnonymousServer
from .credentials import DEFAULT_MECHANISMS, SECRET_SIZE, Credentials
from .mechanism import NOTHING_KNOWN, check_name
from .plain import PlainServer
from .scram_messages import PLUS
from .scram_server import PasswordKeys, ScramServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from .credentials import UserKeys
    from .mechanism import ServerContext, ServerMechanism

__all__ = ["Server"]


class Server:
    """How a listener authenticates its clients.

    Without users, anyone may connect: with ANONYMOUS, or without a SASL layer. With users (or
    ``verify``, ``credentials``, or ``mechanisms``) neither will do, unless ``anonymous=True``
    offers ANONYMOUS too.

    Args:
        users: passwords by user name, for SCRAM and PLAIN. The names are to be prepared (RFC 4013),
            as all are that consist of ASCII.
        verify: an async function that is given user name and password and returns True if they
            belong together, for PLAIN; not together with ``users``. What it raises is answered with
            ``sys``.
        credentials: salted keys, for SCRAM: a mapping such as ``Credentials``, or an async function
            that is given a user name and returns keys by mechanism, or None; not together with ``users``.
        anonymous: whether to offer ANONYMOUS; None: only if there is nothing else to offer.
        mechanisms: further mechanisms, best first; they are offered before SCRAM and PLAIN.
        scram: which SCRAM mechanisms to offer, best first; ``-PLUS`` goes with each by itself. None:
            SHA-512 and SHA-256, or those of them that all of a mapping of ``credentials`` have keys for.
        secret: what made-up salts come from, at least 16 octets; see ``ScramServer``. None: that of
            ``Credentials``, or a new one.

    Raises:
        LocalProtocolError: ``users`` with ``verify`` or ``credentials``, two mechanisms of one name, a
            SCRAM mechanism that is not known or that not all credentials have, or no peer could connect.
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
                "either users or verify and credentials, not both: which of them would be right?"
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
                "neither users, nor verify, nor credentials, nor mechanisms, nor anonymous: no peer could connect"
            )
        if len(names) != len(set(names)):
            raise LocalProtocolError(f"a mechanism is offered twice: {', '.join(names)}")

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
                "there are users in the credentials who lack keys for SCRAM as it is offered"
            )
        # All with -PLUS first, as clients that go by our order should take them.
        return tuple(ScramServer(name + plus, keys, secret=secret) for plus in (PLUS, "") for name in shared)

    def replace_by(self, other: Server) -> None:
        """From now on ask of those who connect what ``other`` asks, e.g. because a file of users was read again.

        Exchanges that have begun, and connections, go on as they are.

        Args:
            other: may be used on its own too.
        """
        self._users = other._users
        self._verify = other._verify
        self._credentials = other._credentials
        self._mechanisms = other._mechanisms
        self._scram = other._scram
        self._anonymous = other._anonymous

    @property
    def requires_sasl(self) -> bool:
        """Whether a client without a SASL layer must be sent away (2.2)."""
        return bool(self._scram) or self._verify is not None or bool(self._mechanisms)

    def offer(
        self,
        secure: bool,
        allow_plaintext_password: bool = False,
        context: ServerContext = NOTHING_KNOWN,
    ) -> list[ServerMechanism]:
        """What to offer on one transport, best first.

        Args:
            secure: whether nobody can read along: TLS, or a peer that is loopback, a Unix socket or memory.
            allow_plaintext_password: offer what needs secrecy all the same.
            context: what is known of the connection below; ``SaslServer`` is given the same.

        Returns:
            Mechanisms for ``SaslServer``. None are left where all need a secrecy that is not
            there: such a client cannot be served, other than by pointing it at TLS (2.2).
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
    """Those of ``names`` that every user has keys for, as far as users can be counted."""
    if not isinstance(credentials, Mapping):
        return list(names)
    users = cast("Mapping[str, UserKeys]", credentials).values()
    return [name for name in names if all(name in keys for keys in users)]
