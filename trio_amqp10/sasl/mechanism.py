"""The interface of a SASL mechanism, for both sides (5.3, RFC 4422).

A *mechanism* is a value that a user makes and may use for many connections: a name and the
credentials, or a way to check them. An *exchange* is one run of it on one connection. The layer
calls the exchange with what the peer sent, and the exchange answers with a *step*: octets to
send, a question to the application, or the end. So a mechanism has no frames, no sockets, no
tasks and no clock, and a test drives it with three lines.

A mechanism that must look up a user, or fetch a token, asks with a ``Question``: a coroutine
function that the adapter awaits, in its own time; what it returns comes back by ``answer``. What
it may know of its connection, entropy included, comes in a *context*.

Knows nothing of frames (``client.py``, ``server.py``) or of any mechanism.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from os import urandom
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.protocol_rules import SASL_ORDER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = [
    "NOTHING_KNOWN",
    "NO_BINDINGS",
    "Challenge",
    "ClientContext",
    "ClientExchange",
    "ClientMechanism",
    "ClientStep",
    "Identity",
    "Question",
    "Refused",
    "Respond",
    "ServerContext",
    "ServerExchange",
    "ServerMechanism",
    "ServerStep",
    "Verified",
    "check_name",
]

NO_BINDINGS: Final[Mapping[str, bytes]] = MappingProxyType({})
"""Of a transport without TLS: nothing that an exchange could be bound to."""

_NAME: Final = re.compile(r"[A-Z0-9_-]{1,20}\Z")


def check_name(name: str) -> str:
    """Give back ``name`` if it can name a mechanism (RFC 4422, section 3.1).

    Raises:
        LocalProtocolError: it is not 1 to 20 of upper-case letters, digits, hyphens, underscores.
    """
    if not _NAME.match(name):
        raise LocalProtocolError(f"{name!r} cannot be the name of a SASL mechanism (RFC 4422, 3.1)")
    return name


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the peer proved to be: made by the SASL layer alone, after an outcome of ok."""

    name: str
    """The authenticated user; ``"anonymous"`` for ANONYMOUS: look at ``mechanism`` before you trust it."""
    mechanism: str
    """The mechanism that proved it, e.g. ``"PLAIN"``."""
    expires: float | None = field(default=None, compare=False, repr=False)
    """When the token ends that proved it, in seconds since 1970; None if it does not end. Not part of who it is."""


class Question:
    """Something that only the application can answer, e.g. whether a password is right.

    The adapter awaits ``ask()`` and hands what it returns to ``answer`` of the layer.

    Attributes:
        about: in words, without secrets.
        ask: the coroutine function to await.
        work: where the answer needs no application but a lot of computing, the plain function that
            does it: an adapter that has threads calls it in one, and does not call ``ask``. Else None.
    """

    __slots__ = ("about", "ask", "work")

    def __init__(self, about: str, ask: Callable[[], Awaitable[object]]) -> None:
        self.about: Final = about
        self.ask: Final = ask
        self.work: Callable[[], object] | None = None

    @classmethod
    def of_work(cls, about: str, work: Callable[[], object]) -> Question:
        """A question that computing answers. ``ask`` does so too, but holds up everything else meanwhile."""

        async def ask() -> object:
            return work()

        question = cls(about, ask)
        question.work = work
        return question

    def __repr__(self) -> str:  # never of ``ask``: it holds what is to be verified
        return f"<Question {self.about!r}>"


def _size(data: bytes | None) -> str:
    """For a repr: how many octets, for what they are may be a secret."""
    return "nothing" if data is None else f"{len(data)} octets"


class Respond:
    """Client: send this. None, as the first step only: begin without an initial response."""

    __slots__ = ("data",)

    def __init__(self, data: bytes | None) -> None:
        self.data: Final = data

    def __repr__(self) -> str:
        return f"<Respond {_size(self.data)}>"


class Challenge:
    """Server: send this, which may be empty, and wait for the client's response."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data: Final = data

    def __repr__(self) -> str:
        return f"<Challenge {_size(self.data)}>"


class Verified:
    """Server: the client is who it says. ``data`` goes into the outcome's additional-data.

    ``expires`` is when the secret that proved it ends, in seconds since 1970; None if it does not end.
    """

    __slots__ = ("data", "expires", "name")

    def __init__(self, name: str, data: bytes | None = None, expires: float | None = None) -> None:
        self.name: Final = name
        self.data: Final = data
        self.expires: Final = expires

    def __repr__(self) -> str:
        return f"<Verified {self.name!r}, {_size(self.data)}>"


class Refused:
    """Server: the client is not authenticated. One shape for every cause: a client that can
    tell an unknown user from a wrong password, or from a malformed message, learns who exists."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<Refused>"


ClientStep = Respond | Question
ServerStep = Challenge | Verified | Refused | Question


@dataclass(frozen=True, slots=True)
class ClientContext:
    """What a client's exchange may want to know of its connection."""

    hostname: str | None = None
    """The host that the client means to reach, as sent in sasl-init."""
    offered: tuple[str, ...] = ()
    """The server's list of mechanisms, in its order."""
    channel_bindings: Mapping[str, bytes] = field(default_factory=lambda: NO_BINDINGS, repr=False)
    """What ties an exchange to this TLS connection, by type of channel binding (RFC 5056)."""
    entropy: Callable[[int], bytes] = urandom
    """Gives so many octets that nobody can guess."""


@dataclass(frozen=True, slots=True)
class ServerContext:
    """What a server's exchange may want to know of its connection."""

    offered: tuple[str, ...] = ()
    """The names that were offered to the client."""
    channel_bindings: Mapping[str, bytes] = field(default_factory=lambda: NO_BINDINGS, repr=False)
    """What ties an exchange to this TLS connection, by type of channel binding (RFC 5056)."""
    peer_certificate: object = None
    """The client's certificate, in whatever form the TLS layer gives it, and only if that layer
    demanded and verified it; else None."""
    entropy: Callable[[int], bytes] = urandom
    """Gives so many octets that nobody can guess."""


NOTHING_KNOWN: Final = ServerContext()
"""Of a connection without TLS."""


class ClientExchange(ABC):
    """One run of a mechanism on the client's side."""

    __slots__ = ()

    @abstractmethod
    def start(self) -> ClientStep:
        """The initial response, or a question that must be answered before there is one."""

    def challenge(self, data: bytes) -> ClientStep:
        """Answer a challenge of the server. A mechanism of one message expects none.

        Raises:
            RemoteProtocolError, SecurityError: what the server sent ends the attempt.
        """
        raise SASL_ORDER.broken(f"a SASL challenge of {len(data)} octets, where the mechanism has none")

    def answer(self, value: object) -> ClientStep:
        """Go on with the answer to the last question. Never called by those that ask none."""
        raise LocalProtocolError(f"an answer of type {type(value).__name__} to no question")

    def finish(self, data: bytes | None) -> str | None:  # noqa: ARG002 - for those that override it
        """The server said ok, and sent this additional data with it.

        A mechanism in which the server proves its identity too must check that here, also when
        ``data`` is None. Returns None if all is well, else why the outcome cannot be believed.
        """
        return None

    def explain(self) -> str | None:
        """Why the server refused, if the mechanism let it say so; in our words, never in the server's."""
        return None


class ClientMechanism(ABC):
    """A mechanism with its credentials, as the client configures it. Reusable, and without secrets in its repr."""

    __slots__ = ()

    name: str
    """As in the server's list (RFC 4422, section 3.1)."""
    needs_secrecy: bool = False
    """Whether what it sends is as good as the password, so that it must not be sent in the clear."""

    def usable(self, context: ClientContext) -> bool:  # noqa: ARG002 - for those that override it
        """Whether it can be used on this connection: False if it needs what this one has not."""
        return True

    @abstractmethod
    def begin(self, context: ClientContext) -> ClientExchange:
        """A new exchange, for one connection."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ServerExchange:
    """One run of a mechanism on the server's side."""

    __slots__ = ()

    @property
    def claimed_name(self) -> str | None:
        """Whom the client says it is, for the log of a failure; None as long as it has not said so."""
        return None

    def start(self, initial_response: bytes | None) -> ServerStep:
        """Take the client's first message; None if it sent none.

        Here as for a mechanism that lets the client speak first: to one that had no room for that goes an
        empty challenge (RFC 4422, section 3.3), and its ``response`` is the message.
        """
        return Challenge(b"") if initial_response is None else self.response(initial_response)

    def response(self, data: bytes) -> ServerStep:  # noqa: ARG002 - for those that override it
        """Take the answer to a challenge. Never called by those that send none."""
        return Refused()

    def answer(self, value: object) -> ServerStep:  # noqa: ARG002 - for those that override it
        """Go on with the application's answer. Never called by those that ask none."""
        return Refused()

    def renewed(self, secret: bytes) -> ServerStep | None:  # noqa: ARG002 - for those that override it
        """Take a secret that replaces the one of this exchange, after the login succeeded; ``answer`` goes on.

        None: the secrets of this mechanism do not end, so there is nothing to verify.
        """
        return None


class ServerMechanism(ABC):
    """A mechanism and its way to check credentials, as a listener offers it."""

    __slots__ = ()

    name: str
    """As offered to clients (RFC 4422, section 3.1)."""
    needs_secrecy: bool = False
    """Whether the client's message is as good as the password: then it is offered only where
    nobody can read along, or where that was allowed by name."""

    def usable(self, context: ServerContext) -> bool:  # noqa: ARG002 - for those that override it
        """Whether to offer it on this connection: False if it needs what this one has not."""
        return True

    @abstractmethod
    def begin(self, context: ServerContext) -> ServerExchange:
        """A new exchange, for one connection."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
