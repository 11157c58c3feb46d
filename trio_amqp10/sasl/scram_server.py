"""SCRAM, the server's side: salted keys, no password (RFC 5802, RFC 7677).

An unknown user gets a made-up salt, always the same one, and is refused exactly as a wrong
password: after the proof, with the same outcome. Otherwise any client could find out which users exist. The
server's own proof is sent with the outcome (5.3.3.5), which saves a round trip.

With ``-PLUS`` the proofs are valid for this TLS connection only. The flag ``y`` means that the client would have used
``-PLUS`` if it had been offered; if it was offered, the client is refused, because an attacker has changed the list.

``scram_messages`` has the messages and keys, ``credentials`` the users. Knows no TLS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.core.errors import LocalProtocolError

from .mechanism import (
    Challenge,
    Question,
    Refused,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    Verified,
)
from .salted_keys import DEFAULT_ITERATIONS, SALT_SIZE, KeysLike, ScramKeys, UserKeys
from .saslprep import prepare
from .scram_messages import (
    BINDINGS,
    HASHES,
    PLUS,
    ClientFinal,
    ClientFirst,
    MalformedError,
    auth_message,
    base64,
    base_name,
    binding_input,
    derive_client_and_server_key,
    hash_of,
    hmac_of,
    make_nonce,
    parse_client_final,
    parse_client_first,
    xor,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


def made_up_salt(secret: bytes, mechanism: str, username: str) -> bytes:
    """Return a salt for a user, always the same, unpredictable without the secret."""
    return hmac_of(mechanism, secret, f"salt {mechanism} {username}".encode())[:SALT_SIZE]


class ScramServer(ServerMechanism):
    """Accept clients that prove the password, and prove the server's identity to them.

    Args:
        mechanism: as for ``Scram``. With ``-PLUS`` it is offered only on TLS connections.
        credentials: salted keys by user name and mechanism; read at every attempt, so they may
            change. Or an async function that takes a (prepared) user name and returns that
            user's keys by mechanism, or None. If it raises, the outcome is ``sys``.
        secret: at least 16 octets from which the salts of unknown users are made. Keep it over
            restarts, otherwise an attacker who tries a name before and after a restart learns whether it exists.
        iterations: the number for unknown users; None: as most users have, or 15,000.

    Raises:
        LocalProtocolError: no such mechanism, or too short a secret.
    """

    __slots__ = ("_credentials", "_iterations", "_secret", "name")

    def __init__(
        self,
        mechanism: str,
        credentials: Mapping[str, UserKeys] | Callable[[str], Awaitable[UserKeys | None]],
        *,
        secret: bytes,
        iterations: int | None = None,
    ) -> None:
        if base_name(mechanism) not in HASHES:
            raise LocalProtocolError(f"{mechanism!r} is no known SCRAM mechanism")
        if len(secret) < SALT_SIZE:
            raise LocalProtocolError(f"a secret of {len(secret)} octets, fewer than {SALT_SIZE}")
        self.name: str = mechanism
        self._credentials: Final = credentials
        self._secret: Final = secret
        self._iterations: Final = (
            _usual_iterations(credentials, mechanism) if iterations is None else iterations
        )

    def usable(self, context: ServerContext) -> bool:
        return not self.name.endswith(PLUS) or any(kind in context.channel_bindings for kind in BINDINGS)

    def begin(self, context: ServerContext) -> ServerExchange:
        return _ScramServer(self.name, context, self._look_up, self._made_up)

    def __repr__(self) -> str:
        return f"ScramServer({self.name!r})"

    def _look_up(self, username: str) -> UserKeys | Question | None:
        look_up = self._credentials
        if not callable(look_up):
            return look_up.get(username)
        return Question(f"{self.name}: look up user {username!r}", partial(look_up, username))

    def _made_up(self, username: str) -> KeysLike:
        """Return keys for an unknown user; no password fits them."""
        base = base_name(self.name)
        key = hmac_of(base, self._secret, b"no key")
        return ScramKeys(made_up_salt(self._secret, base, username), self._iterations, key, key)


def _usual_iterations(credentials: object, mechanism: str) -> int:
    if isinstance(credentials, PasswordKeys) or not isinstance(credentials, Mapping):
        return DEFAULT_ITERATIONS
    users = cast("Mapping[str, UserKeys]", credentials)
    base = base_name(mechanism)
    counts = Counter(keys[base].iterations for keys in users.values() if base in keys)
    return counts.most_common(1)[0][0] if counts else DEFAULT_ITERATIONS


class _ScramServer(ServerExchange):
    __slots__ = (
        "_base",
        "_context",
        "_first",
        "_keys",
        "_known",
        "_look_up",
        "_made_up",
        "_name",
        "_nonce",
        "_server_first",
        "_username",
    )

    _first: ClientFirst
    _nonce: str
    _keys: KeysLike
    _known: bool

    def __init__(
        self,
        name: str,
        context: ServerContext,
        look_up: Callable[[str], UserKeys | Question | None],
        made_up: Callable[[str], KeysLike],
    ) -> None:
        self._name = name
        self._base = base_name(name)
        self._context = context
        self._look_up = look_up
        self._made_up = made_up
        self._username = ""
        self._server_first = ""

    @property
    def claimed_name(self) -> str | None:
        return self._username or None

    def response(self, data: bytes) -> ServerStep:
        try:
            if self._server_first:
                return self._client_final(parse_client_final(data))
            return self._client_first(parse_client_first(data))
        except MalformedError:
            return Refused()

    def answer(self, value: object) -> ServerStep:
        if value is not None and not isinstance(value, Mapping):
            raise LocalProtocolError(
                f"the look-up of a user returned {type(value).__name__}, not a mapping of keys"
            )
        return self._found(cast("UserKeys | None", value))

    def _client_first(self, first: ClientFirst) -> ServerStep:
        try:
            self._username = prepare(first.username, "user name")
        except LocalProtocolError:
            return Refused()
        if not self._flag_will_do(first) or first.authzid not in ("", first.username):
            return Refused()  # we cannot authorise a user to act as another
        self._first = first
        self._nonce = first.nonce + make_nonce(self._context.entropy)
        found = self._look_up(self._username)
        return found if isinstance(found, Question) else self._found(found)

    def _flag_will_do(self, first: ClientFirst) -> bool:
        # -PLUS requires a channel binding that this connection has (RFC 5802, 6).
        if self._name.endswith(PLUS):
            return first.binding in BINDINGS and first.binding in self._context.channel_bindings
        # ``y`` is valid only if -PLUS was not offered; otherwise an attacker removed it from the list.
        plus_offered = any(base + PLUS in self._context.offered for base in HASHES)
        return first.flag == "n" or (first.flag == "y" and not plus_offered)

    def _found(self, user: UserKeys | None) -> Challenge:
        keys = user.get(self._base) if user is not None else None
        self._known = keys is not None
        self._keys = self._made_up(self._username) if keys is None else keys
        self._server_first = f"r={self._nonce},s={base64(self._keys.salt)},i={self._keys.iterations}"
        return Challenge(self._server_first.encode())

    def _client_final(self, final: ClientFinal) -> ServerStep:
        first = self._first
        data = b"" if first.binding is None else self._context.channel_bindings[first.binding]
        bound = compare_digest(final.binding.encode(), binding_input(first.header, data).encode())
        fresh = compare_digest(final.nonce.encode(), self._nonce.encode())
        stored_key = self._keys.stored_key
        signed = auth_message(first.bare, self._server_first, final.without_proof)
        signature = hmac_of(self._base, stored_key, signed)
        if len(final.proof) != len(signature):
            return Refused()
        client_key = xor(final.proof, signature)
        proven = compare_digest(hash_of(self._base, client_key), stored_key)
        # All checks are made before any result is used, so that the time does not show which one failed.
        if not (bound and fresh and proven and self._known):
            return Refused()
        server_signature = hmac_of(self._base, self._keys.server_key, signed)
        return Verified(self._username, f"v={base64(server_signature)}".encode())


# -- users with passwords


class PasswordKeys(Mapping[str, UserKeys]):
    """Keys of users whose passwords are known, derived at the first proof for each.

    The salt is made in the same way as for unknown users, without
    the password: until the proof, which may fail for either, the octets and the time do not differ.

    Args:
        users: passwords by user name, the names prepared (RFC 4013); read at every attempt,
            so it may change. An empty password, or one that RFC 4013 prohibits, fails like a wrong
            one, and ``SaslServer.error`` has the reason.
        secret: at least 16 octets from which the salts are made.
    """

    __slots__ = ("_made", "_secret", "_users")

    def __init__(self, users: Mapping[str, str], secret: bytes) -> None:
        self._users: Final = users
        self._secret: Final = secret
        self._made: Final[dict[tuple[str, str], _LazyKeys]] = {}

    def __getitem__(self, username: str) -> UserKeys:
        password = self._users[username]
        return {mechanism: self._keys_of(username, password, mechanism) for mechanism in HASHES}

    def __iter__(self) -> Iterator[str]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def _keys_of(self, username: str, password: str, mechanism: str) -> _LazyKeys:
        made = self._made.get((username, mechanism))
        if made is None or made.password != password:
            salt = made_up_salt(self._secret, mechanism, username)
            made = self._made[username, mechanism] = _LazyKeys(mechanism, password, salt)
        return made


class _LazyKeys:
    """Keys of a password that are derived on first use; the salt is known before."""

    __slots__ = ("_keys", "_mechanism", "password", "salt")

    salt: bytes

    def __init__(self, mechanism: str, password: str, salt: bytes) -> None:
        self._mechanism = mechanism
        self.password = password
        self.salt = salt
        self._keys: tuple[bytes, bytes] | None = None

    @property
    def iterations(self) -> int:
        return DEFAULT_ITERATIONS

    @property
    def stored_key(self) -> bytes:
        return self._derived()[0]

    @property
    def server_key(self) -> bytes:
        return self._derived()[1]

    def _derived(self) -> tuple[bytes, bytes]:
        if self._keys is None:
            prepared = prepare(self.password, "password")
            client_key, server_key = derive_client_and_server_key(
                self._mechanism, prepared, self.salt, self.iterations
            )
            self._keys = hash_of(self._mechanism, client_key), server_key
        return self._keys
