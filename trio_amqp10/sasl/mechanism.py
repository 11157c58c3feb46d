"""The interface of a SASL mechanism, for both sides (5.3, RFC 4422).

A *mechanism* is an object that a user makes and may use for many connections: a name and the
credentials, or a way to check them. An *exchange* is one run of it on one connection. The layer
calls the exchange with the peer's messages, and the exchange returns a *step*: octets to
send, a question to the application, or the end. So a mechanism has no frames, no sockets, no
tasks and no clock, and a test drives it with three lines.

A mechanism that must look up a user, or fetch a token, returns a ``Question``: a coroutine
function that the adapter awaits; its result is passed to ``answer``. The data of the connection that a mechanism may
use, entropy included, are in a *context*.

Knows nothing of frames (``amqp10/engine/sasl_layer.py``) or of any mechanism.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from os import urandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import SASL_ORDER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

NO_BINDINGS: Final[Mapping[str, bytes]] = MappingProxyType({})
"""The channel bindings of a transport without TLS: none."""

_NAME: Final = re.compile(r"[A-Z0-9_-]{1,20}\Z")


def check_name(name: str) -> str:
    """Return ``name`` if it can name a mechanism (RFC 4422, section 3.1).

    Raises:
        LocalProtocolError: it does not consist of 1 to 20 upper-case letters, digits, hyphens and underscores.
    """
    if not _NAME.match(name):
        raise LocalProtocolError(f"{name!r} cannot be the name of a SASL mechanism (RFC 4422, 3.1)")
    return name


@dataclass(frozen=True, slots=True)
class Identity:
    """The proven identity of a peer.

    Only the SASL layer makes it, after the outcome ok.
    """

    name: str
    """The authenticated user; check ``mechanism`` before you trust it.

    It is ``"anonymous"`` for ANONYMOUS.
    """
    mechanism: str
    """The mechanism that proved it, e.g. ``"PLAIN"``."""
    expires: float | None = field(default=None, compare=False, repr=False)
    """When the token that proved it expires, in seconds since 1970, or None.

    None means that it does not expire. Comparisons ignore it.
    """


class Question:
    """A question to the application, e.g. whether a password is right.

    The adapter awaits ``ask()`` and passes the result to ``answer`` of the layer.

    Attributes:
        about: a description without secrets.
        ask: the coroutine function to await.
        work: if the answer needs only a long computation, the plain function that does it, otherwise None: an adapter with
            threads calls it in one, and does not call ``ask``.
    """

    __slots__ = ("about", "ask", "work")

    def __init__(self, about: str, ask: Callable[[], Awaitable[object]]) -> None:
        self.about: Final = about
        self.ask: Final = ask
        self.work: Callable[[], object] | None = None

    @classmethod
    def of_work(cls, about: str, work: Callable[[], object]) -> Question:
        """Return a question whose answer is computed by ``work``.

        ``ask`` calls it too, but then blocks all other tasks.
        """

        async def ask() -> object:
            return work()

        question = cls(about, ask)
        question.work = work
        return question

    def __repr__(self) -> str:  # without ``ask``, which may contain a password
        return f"<Question {self.about!r}>"


def _size(data: bytes | None) -> str:
    """Return the number of octets, for a repr: their values may be secret."""
    return "nothing" if data is None else f"{len(data)} octets"


class Respond:
    """Client: send ``data``.

    None, in the first step only: begin without an initial response.
    """

    __slots__ = ("data",)

    def __init__(self, data: bytes | None) -> None:
        self.data: Final = data

    def __repr__(self) -> str:
        return f"<Respond {_size(self.data)}>"


class Challenge:
    """Server: send ``data``, which may be empty, and wait for the client's response."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data: Final = data

    def __repr__(self) -> str:
        return f"<Challenge {_size(self.data)}>"


class Verified:
    """Server: the client is authenticated.

    Attributes:
        name: the user.
        data: for the outcome's additional-data; None for none.
        expires: when the secret that proved it expires, in seconds since 1970; None if it does not.
    """

    __slots__ = ("data", "expires", "name")

    def __init__(self, name: str, data: bytes | None = None, expires: float | None = None) -> None:
        self.name: Final = name
        self.data: Final = data
        self.expires: Final = expires

    def __repr__(self) -> str:
        return f"<Verified {self.name!r}, {_size(self.data)}>"


class Refused:
    """Server: the client is not authenticated.

    It has no reason: if a client could distinguish an unknown user from a wrong password or a malformed message, it would learn
    which users exist.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "<Refused>"


ClientStep = Respond | Question
ServerStep = Challenge | Verified | Refused | Question


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The data of a connection that a client's exchange may use."""

    hostname: str | None = None
    """The host that the client intends to reach, as sent in sasl-init."""
    offered: tuple[str, ...] = ()
    """The server's list of mechanisms, in its order."""
    channel_bindings: Mapping[str, bytes] = field(default_factory=lambda: NO_BINDINGS, repr=False)
    """Data that bind an exchange to this TLS connection, by type (RFC 5056)."""
    entropy: Callable[[int], bytes] = urandom
    """Returns the given number of unpredictable octets."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The data of a connection that a server's exchange may use."""

    offered: tuple[str, ...] = ()
    """The names that were offered to the client."""
    channel_bindings: Mapping[str, bytes] = field(default_factory=lambda: NO_BINDINGS, repr=False)
    """Data that bind an exchange to this TLS connection, by type (RFC 5056)."""
    peer_certificate: object = None
    """The client's certificate, if the TLS layer verified it, otherwise None.

    Its type is that of the TLS layer, which must also have requested it.
    """
    entropy: Callable[[int], bytes] = urandom
    """Returns the given number of unpredictable octets."""


NOTHING_KNOWN: Final = ServerContext()
"""The context of a connection without TLS."""


class ClientExchange(ABC):
    """One run of a mechanism on the client's side."""

    __slots__ = ()

    @abstractmethod
    def start(self) -> ClientStep:
        """Return the initial response, or a question that must be answered first."""

    def challenge(self, data: bytes) -> ClientStep:
        """Return the response to a challenge of the server.

        A mechanism of one message does not override it, and expects none.

        Raises:
            RemoteProtocolError, SecurityError: the challenge ends the attempt.
        """
        raise SASL_ORDER.broken(f"a SASL challenge of {len(data)} octets, but the mechanism has none")

    def answer(self, value: object) -> ClientStep:
        """Continue with the answer to the last question.

        Never called for an exchange that asks none.
        """
        raise LocalProtocolError(f"an answer of type {type(value).__name__}, but no question was asked")

    def finish(self, data: bytes | None) -> str | None:  # noqa: ARG002 - for those that override it
        """Check the server's outcome ok, with its additional data.

        A mechanism in which the server proves its identity too must check the proof here, also when
        ``data`` is None. Return None if the outcome can be accepted, otherwise the reason why it cannot.
        """
        return None

    def explain(self) -> str | None:
        """Return why the server refused, if the mechanism transports that.

        The text is ours, never the server's.
        """
        return None


class SoleResponse(ClientExchange):
    """A run of a mechanism of one message, which may be empty."""

    __slots__ = ("_response",)

    def __init__(self, response: bytes) -> None:
        self._response = response

    def start(self) -> Respond:
        return Respond(self._response)


class ClientMechanism(ABC):
    """A mechanism with its credentials, as the client configures it.

    It is reusable, and its repr contains no secrets.
    """

    __slots__ = ()

    name: str
    """Its name in the server's list (RFC 4422, section 3.1)."""
    needs_secrecy: bool = False
    """Whether its messages reveal a secret, so that they need a private transport."""

    def usable(self, context: ClientContext) -> bool:  # noqa: ARG002 - for those that override it
        """Whether this connection has all that the mechanism needs."""
        return True

    @abstractmethod
    def begin(self, context: ClientContext) -> ClientExchange:
        """Return a new exchange, for one connection."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def user_of(mechanism: ClientMechanism) -> str | None:
    """Return the user who logs in by a mechanism; None if it names none."""
    return getattr(mechanism, "username", None) or None


class ServerExchange:
    """One run of a mechanism on the server's side."""

    __slots__ = ()

    @property
    def claimed_name(self) -> str | None:
        """The claimed user name, for the log of a failure; None before it is received."""
        return None

    def start(self, initial_response: bytes | None) -> ServerStep:
        """Take the client's initial response; None if it sent none.

        This is for mechanisms that begin with a message of the client: if it was not in sasl-init, an
        empty challenge is returned (RFC 4422, section 3.3), and the message is passed to ``response``.
        """
        return Challenge(b"") if initial_response is None else self.response(initial_response)

    def response(self, data: bytes) -> ServerStep:  # noqa: ARG002 - for those that override it
        """Take the response to a challenge.

        Never called for an exchange that sends none.
        """
        return Refused()

    def answer(self, value: object) -> ServerStep:  # noqa: ARG002 - for those that override it
        """Continue with the application's answer.

        Never called for an exchange that asks none.
        """
        return Refused()

    def renewed(self, secret: bytes) -> ServerStep | None:  # noqa: ARG002 - for those that override it
        """Verify a new secret after the login; ``answer`` continues.

        None: the secrets of this mechanism do not expire, so there is nothing to verify.
        """
        return None


class ServerMechanism(ABC):
    """A mechanism and its way to check credentials, as a listener offers it."""

    __slots__ = ()

    name: str
    """The name that is offered to clients (RFC 4422, section 3.1)."""
    needs_secrecy: bool = False
    """Whether the client's messages reveal a secret.

    Then it is offered only if no third party can read them, or if that was permitted explicitly.
    """

    def usable(self, context: ServerContext) -> bool:  # noqa: ARG002 - for those that override it
        """Whether this connection has all that the mechanism needs."""
        return True

    @abstractmethod
    def begin(self, context: ServerContext) -> ServerExchange:
        """Return a new exchange, for one connection."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
