"""What a listener asks of those who connect, as a value (5.3).

Knows which mechanisms go with which transport; runs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError

from .anonymous import AnonymousServer
from .mechanism import check_name
from .plain import PlainServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from .mechanism import ServerMechanism

__all__ = ["Server"]


class Server:
    """How a listener authenticates its clients.

    Without users, anyone may connect: with ANONYMOUS, or without a SASL layer. With users (or
    ``verify``, or ``mechanisms``) neither will do, unless ``anonymous=True`` offers ANONYMOUS too.

    Args:
        users: passwords by user name, for PLAIN.
        verify: in place of ``users``: an async function that is given user name and password and
            returns True if they belong together. What it raises is answered with ``sys``.
        anonymous: whether to offer ANONYMOUS; None: only if there is nothing else to offer.
        mechanisms: further mechanisms, best first; they are offered before PLAIN.

    Raises:
        LocalProtocolError: both ``users`` and ``verify``, two mechanisms of one name, or nobody could connect.
    """

    __slots__ = ("_anonymous", "_mechanisms", "_users", "_verify")

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        verify: Callable[[str, str], Awaitable[bool]] | None = None,
        anonymous: bool | None = None,
        mechanisms: Sequence[ServerMechanism] = (),
    ) -> None:
        if users is not None and verify is not None:
            raise LocalProtocolError("either users or verify, not both: which of them would be right?")
        self._users: Final = users
        self._verify: Final = verify
        self._mechanisms: Final = tuple(mechanisms)
        self._anonymous: Final = not self.requires_sasl if anonymous is None else anonymous
        names = [check_name(mechanism.name) for mechanism in self.offer(secure=True)]
        if not names:
            raise LocalProtocolError(
                "neither users, nor verify, nor mechanisms, nor anonymous: nobody could connect"
            )
        if len(names) != len(set(names)):
            raise LocalProtocolError(f"a mechanism is offered twice: {', '.join(names)}")

    @property
    def requires_sasl(self) -> bool:
        """Whether a client without a SASL layer must be sent away (2.2)."""
        return self._users is not None or self._verify is not None or bool(self._mechanisms)

    def offer(self, secure: bool, allow_plaintext_password: bool = False) -> list[ServerMechanism]:
        """What to offer on one transport, best first.

        Args:
            secure: whether nobody can read along: TLS, or a peer that is loopback, a Unix socket or memory.
            allow_plaintext_password: offer what needs secrecy all the same.

        Returns:
            Mechanisms for ``SaslServer``. None are left where all need a secrecy that is not
            there: such a client cannot be served, other than by pointing it at TLS (2.2).
        """
        permitted = secure or allow_plaintext_password
        offered = [mechanism for mechanism in self._mechanisms if permitted or not mechanism.needs_secrecy]
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
        if self._anonymous:
            parts.append("anonymous")
        return f"<sasl.Server: {', '.join(parts)}>"
