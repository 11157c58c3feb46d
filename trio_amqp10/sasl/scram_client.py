"""SCRAM, the client's side (RFC 5802, RFC 7677).

The server's proof arrives in one more challenge or in the outcome (5.3.3.5), depending on the
server; without it the exchange fails. With ``-PLUS`` both proofs are valid
for this TLS connection only, so that no attacker in the middle can pass them on.

The server selects the number of iterations of the key derivation. Too few are refused, too many too,
and a long derivation becomes a ``Question`` with ``work``, for adapters that have threads.

``scram_messages`` has the messages and keys. Knows no TLS: the channel binding is an argument.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import SASL_CHALLENGE

from .codes import SaslCode
from .errors import AuthenticationError
from .mechanism import ClientContext, ClientExchange, ClientMechanism, ClientStep, Question, Respond
from .saslprep import prepare
from .scram_messages import (
    BINDINGS,
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    PLUS,
    QUICK_ITERATIONS,
    MalformedError,
    auth_message,
    base64,
    base_name,
    binding_input,
    derive_client_and_server_key,
    escape_name,
    hash_of,
    hmac_of,
    make_nonce,
    parse_server_final,
    parse_server_first,
    xor,
)

if TYPE_CHECKING:
    from .scram_messages import ServerFirst


class Scram(ClientMechanism):
    """Log in with a user name and a password, without revealing the password.

    Args:
        username: at most 255 octets once prepared (RFC 4013).
        password: the same; it may be empty.
        mechanism: ``SCRAM-SHA-512``, ``SCRAM-SHA-256`` or ``SCRAM-SHA-1``; with ``-PLUS`` the
            exchange is bound to the TLS connection, and is not used without TLS.
        channel_binding: the type of channel binding to use, for a server that knows only one:
            ``tls-server-end-point`` or ``tls-exporter``. None: the first of these that the connection has.
        max_iterations: rounds of key derivation that a server may demand.

    Raises:
        LocalProtocolError: no such mechanism or type; RFC 4013 prohibits the name or password, or it is too long.
    """

    __slots__ = ("_bindings", "_max_iterations", "_password", "name", "username")

    def __init__(
        self,
        username: str,
        password: str,
        mechanism: str = "SCRAM-SHA-256",
        *,
        channel_binding: str | None = None,
        max_iterations: int = MAX_ITERATIONS,
    ) -> None:
        if base_name(mechanism) not in HASHES:
            raise LocalProtocolError(f"{mechanism!r} is no known SCRAM mechanism")
        if channel_binding is not None and channel_binding not in BINDINGS:
            raise LocalProtocolError(f"{channel_binding!r} is no known type of channel binding")
        self.name: str = mechanism
        self.username: Final = prepare(username, "user name")
        self._password: Final = prepare(password, "password", empty=True)
        self._bindings: Final = BINDINGS if channel_binding is None else (channel_binding,)
        self._max_iterations: Final = max_iterations

    def usable(self, context: ClientContext) -> bool:
        return not self.name.endswith(PLUS) or self._binding(context) is not None

    def begin(self, context: ClientContext) -> ClientExchange:
        binding = self._binding(context)
        data = b""
        if not self.name.endswith(PLUS):
            # ``y`` shows a server that did offer -PLUS that an attacker removed it from the list (RFC 5802, 6).
            could = binding is not None and self.name + PLUS not in context.offered
            header = "y,," if could else "n,,"
        elif binding is None:
            raise LocalProtocolError(f"{self.name} needs a TLS connection to bind to")
        else:
            header, data = f"p={binding},,", context.channel_bindings[binding]
        return _ScramClient(
            self.name,
            self.username,
            self._password,
            header=header,
            binding=data,
            nonce=make_nonce(context.entropy),
            max_iterations=self._max_iterations,
        )

    def _binding(self, context: ClientContext) -> str | None:
        return next((kind for kind in self._bindings if kind in context.channel_bindings), None)

    def __repr__(self) -> str:
        return f"Scram({self.username!r}, ..., {self.name!r})"


class _Awaits(Enum):
    SERVER_FIRST = auto()
    KEYS = auto()
    SERVER_FINAL = auto()
    OUTCOME = auto()


class _ScramClient(ClientExchange):
    __slots__ = (
        "_awaits",
        "_bare",
        "_binding",
        "_first",
        "_header",
        "_max_iterations",
        "_name",
        "_nonce",
        "_password",
        "_signature",
        "_user",
    )

    def __init__(
        self,
        name: str,
        username: str,
        password: str,
        *,
        header: str,
        binding: bytes,
        nonce: str,
        max_iterations: int,
    ) -> None:
        self._name = name
        self._user = username
        self._password = password
        self._header = header
        self._binding = binding
        self._nonce = nonce
        self._max_iterations = max_iterations
        self._bare = f"n={escape_name(username)},r={nonce}"
        self._awaits = _Awaits.SERVER_FIRST
        self._first: ServerFirst | None = None
        self._signature = b""

    def start(self) -> Respond:
        return Respond((self._header + self._bare).encode())

    def challenge(self, data: bytes) -> ClientStep:
        try:
            if self._awaits is _Awaits.SERVER_FIRST:
                return self._server_first(parse_server_first(data))
            if self._awaits is _Awaits.SERVER_FINAL:
                return self._server_final(parse_server_final(data))
        except MalformedError as error:
            raise SASL_CHALLENGE.broken(f"a challenge of {self._name} with {error}") from None
        return super().challenge(data)

    def answer(self, value: object) -> ClientStep:
        if self._awaits is not _Awaits.KEYS:
            return super().answer(value)
        return self._client_final(cast("tuple[bytes, bytes]", value))

    def finish(self, data: bytes | None) -> str | None:
        if self._awaits is _Awaits.SERVER_FINAL and data is not None:
            try:
                signature = parse_server_final(data)
            except MalformedError as error:
                return f"the server accepted the login, but sent {error}"
            return self._doubt(signature)
        return (
            None
            if self._awaits is _Awaits.OUTCOME
            else "the server accepted the login, but did not prove its identity"
        )

    def _server_first(self, first: ServerFirst) -> ClientStep:
        # The server must append octets of its own to our nonce (RFC 5802, 5.1).
        if not first.nonce.startswith(self._nonce) or len(first.nonce) == len(self._nonce):
            raise self._broken_off("the server did not extend our nonce: it may replay an old exchange")
        if first.iterations < MIN_ITERATIONS:
            raise self._broken_off(
                f"the server asks for {first.iterations} iterations, fewer than {MIN_ITERATIONS}: too weak"
            )
        if first.iterations > self._max_iterations:
            raise self._broken_off(
                f"the server asks for {first.iterations} iterations, more than {self._max_iterations}"
            )
        self._first = first
        self._awaits = _Awaits.KEYS
        derive = partial(
            derive_client_and_server_key, base_name(self._name), self._password, first.salt, first.iterations
        )
        # A long derivation would block all other tasks, so the adapter may call it in a thread.
        if first.iterations > QUICK_ITERATIONS:
            return Question.of_work(f"{self._name}: {first.iterations} iterations", derive)
        return self._client_final(derive())

    def _client_final(self, keys: tuple[bytes, bytes]) -> Respond:
        assert self._first is not None
        client_key, server_key = keys
        base = base_name(self._name)
        without_proof = f"c={binding_input(self._header, self._binding)},r={self._first.nonce}"
        signed = auth_message(self._bare, self._first.text, without_proof)
        proof = xor(client_key, hmac_of(base, hash_of(base, client_key), signed))
        self._signature = hmac_of(base, server_key, signed)
        self._awaits = _Awaits.SERVER_FINAL
        return Respond(f"{without_proof},p={base64(proof)}".encode())

    def _server_final(self, signature: bytes | None) -> Respond:
        doubt = self._doubt(signature)
        if doubt is not None:
            code = SaslCode.AUTH if signature is None else None
            raise AuthenticationError(code, self._name, doubt, self._user)
        self._awaits = _Awaits.OUTCOME
        return Respond(b"")

    def _doubt(self, signature: bytes | None) -> str | None:
        if signature is None:
            return "the server refused the credentials"
        if compare_digest(signature, self._signature):
            return None
        return "the server does not know the password: another host impersonates it"

    def _broken_off(self, reason: str) -> AuthenticationError:
        return AuthenticationError(None, self._name, reason)
