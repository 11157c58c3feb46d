"""Users of a server, as salted keys (RFC 5802, section 9).

``Credentials`` is a mapping for ``Server(credentials=...)``, and the content of a file::

    trio-amqp10-users 1
    secret 7mUiz6t...
    user ada SCRAM-SHA-256 15000 SALT STORED-KEY SERVER-KEY

The file has one line for each user and mechanism. Octets are in Base64; in a name each octet that is no letter, digit or one
of ``_.-~`` is written as ``%XX``. Empty lines and lines that begin with ``#`` are ignored. An unknown user gets a salt made from
the secret: if the secret changed at each restart, an attacker could find out which names are unknown, because
their salts would change.

Knows no exchange. Reading and writing block, so use them when a program starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, NoReturn, Protocol
from urllib.parse import quote, unquote

from trio_amqp10.core.errors import LocalProtocolError

from .saslprep import prepare
from .scram_messages import (
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    MalformedError,
    base64,
    derive_client_and_server_key,
    hash_of,
    parse_base64,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

DEFAULT_ITERATIONS: Final = 15_000
DEFAULT_MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
"""Default mechanisms of keys and of an offer: SHA-1 must be named explicitly."""
SALT_SIZE: Final = 16
"""Octets of a new salt, and of a made-up one."""
SECRET_SIZE: Final = 32
"""Octets of a new secret."""
LOWEST_SALT_SIZE: Final = 8
"""Least octets of a salt in records that other systems made."""
_HEADER: Final = "trio-amqp10-users 1"


class KeysLike(Protocol):
    """The keys of a user, as an exchange needs them.

    The two keys are read only after the client has sent its proof.
    """

    @property
    def salt(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """The data of a user for one mechanism (RFC 5802, section 3).

    Raises:
        LocalProtocolError: a salt of fewer than 8 octets, fewer than 4096 iterations or more
            than a million, or keys that are empty or differ in length.
    """

    salt: bytes
    iterations: int
    stored_key: bytes = field(repr=False)
    """Verifies the client's proof, but cannot make one."""
    server_key: bytes = field(repr=False)
    """Makes the server's proof: with it an attacker can impersonate the server."""

    def __post_init__(self) -> None:
        if len(self.salt) < LOWEST_SALT_SIZE:
            raise LocalProtocolError(f"a salt of {len(self.salt)} octets, fewer than {LOWEST_SALT_SIZE}")
        if not MIN_ITERATIONS <= self.iterations <= MAX_ITERATIONS:
            raise LocalProtocolError(
                f"{self.iterations} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS} (RFC 7677, 4)"
            )
        if not self.stored_key or len(self.stored_key) != len(self.server_key):
            raise LocalProtocolError("the keys are empty or differ in length")


UserKeys = Mapping[str, KeysLike]
"""A user's keys by mechanism, e.g. ``"SCRAM-SHA-256"``.

A mechanism with ``-PLUS`` uses the keys of the one without, so its name never occurs.
"""


def derive_keys(
    password: str,
    mechanism: str = "SCRAM-SHA-256",
    *,
    iterations: int = DEFAULT_ITERATIONS,
    salt: bytes | None = None,
    entropy: Callable[[int], bytes] = os.urandom,
) -> ScramKeys:
    """Return the keys of a password; takes about a microsecond per iteration.

    Args:
        password: 1 to 255 octets once prepared (RFC 4013).
        mechanism: without ``-PLUS``.
        iterations: of the key derivation, at least 4096.
        salt: for this user alone; a new one of 16 octets if None.
        entropy: returns the given number of unpredictable octets.

    Raises:
        LocalProtocolError: an invalid password or mechanism, or as in ``ScramKeys``.
    """
    if mechanism not in HASHES:
        raise LocalProtocolError(f"{mechanism!r} has no keys; expected one of: {', '.join(HASHES)}")
    prepared = prepare(password, "password")
    salt = entropy(SALT_SIZE) if salt is None else salt
    client_key, server_key = derive_client_and_server_key(mechanism, prepared, salt, iterations)
    return ScramKeys(salt, iterations, hash_of(mechanism, client_key), server_key)


class Credentials(Mapping[str, UserKeys]):
    """Users and their salted keys: ``Server(credentials=Credentials(...))``.

    No password is kept.

    Args:
        users: the first users; their names must be prepared (RFC 4013).
        secret: 32 octets for the salts of unknown users; new ones if None.

    Attributes:
        secret: with it an attacker can find out which names are in use, but no password.

    Raises:
        LocalProtocolError: a user without keys.
    """

    __slots__ = ("_users", "secret")

    def __init__(self, users: Mapping[str, UserKeys] | None = None, *, secret: bytes | None = None) -> None:
        self._users: Final = {name: dict(keys) for name, keys in (users or {}).items()}
        if not all(self._users.values()):
            raise LocalProtocolError("a user needs the keys of at least one mechanism")
        self.secret: Final = os.urandom(SECRET_SIZE) if secret is None else secret

    def set_password(
        self,
        username: str,
        password: str,
        *,
        mechanisms: Sequence[str] = DEFAULT_MECHANISMS,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Add a user, or change a user's password.

        Computes for each mechanism, as ``derive_keys`` does.

        Raises:
            LocalProtocolError: as in ``derive_keys``; or RFC 4013 prohibits the name.
        """
        name = prepare(username, "user name")
        if not mechanisms:
            raise LocalProtocolError("a user needs the keys of at least one mechanism")
        self._users[name] = {
            mechanism: derive_keys(password, mechanism, iterations=iterations) for mechanism in mechanisms
        }

    def remove(self, username: str) -> None:
        """Remove a user.

        Raises:
            KeyError: there is no such user.
        """
        del self._users[username]

    async def verify(self, username: str, password: str) -> bool:
        """Return whether the user name and the password belong together.

        ``Server(credentials=c, verify=c.verify)`` offers PLAIN too. The key derivation runs in the calling task, and takes as
        long for an unknown user.

        Cancelled: never, because it does not wait.
        """
        mine = self._users.get(username)
        model = mine or next(iter(self._users.values()), None)
        if model is None:
            return False
        try:
            prepared = prepare(password, "password")
        except LocalProtocolError:
            return False
        mechanism, keys = next(iter(model.items()))
        client_key, _ = derive_client_and_server_key(mechanism, prepared, keys.salt, keys.iterations)
        return compare_digest(hash_of(mechanism, client_key), keys.stored_key) and mine is not None

    def __getitem__(self, username: str) -> UserKeys:
        return self._users[username]

    def __iter__(self) -> Iterator[str]:
        return iter(self._users)

    def __len__(self) -> int:
        return len(self._users)

    def __repr__(self) -> str:
        return f"<Credentials of {len(self._users)} users>"


# -- the file


def format_users(credentials: Credentials) -> str:
    """Return the text of a users file, with the names in order."""
    lines = [_HEADER, f"secret {base64(credentials.secret)}"]
    for name in sorted(credentials):
        for mechanism, keys in credentials[name].items():
            octets = (base64(each) for each in (keys.salt, keys.stored_key, keys.server_key))
            salt, stored_key, server_key = octets
            lines.append(
                f"user {quote(name, safe='')} {mechanism} {keys.iterations} {salt} {stored_key} {server_key}"
            )
    return "\n".join(lines) + "\n"


def parse_users(text: str) -> Credentials:
    """Return the credentials in a text that ``format_users`` made.

    Raises:
        LocalProtocolError: a line is invalid; the message has its number and quotes nothing of it.
    """
    users: dict[str, dict[str, KeysLike]] = {}
    secret: bytes | None = None
    headed = False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not headed:
            if line.rstrip() != _HEADER:
                _bad_line(number, f"the first line is not {_HEADER!r}")
            headed = True
            continue
        match line.split():
            case ["secret", octets] if secret is None:
                secret = _octets(number, octets)
            case ["user", name, mechanism, iterations, *octets] if len(octets) == 3:
                keys = _keys(number, mechanism, iterations, *(_octets(number, each) for each in octets))
                mine = users.setdefault(_name(number, name), {})
                if mechanism in mine:
                    _bad_line(number, "keys that an earlier line contains already")
                mine[mechanism] = keys
            case _:
                _bad_line(number, "neither a first secret nor a user with all of its fields")
    if not headed:
        _bad_line(1, f"the first line is not {_HEADER!r}")
    return Credentials(users, secret=secret)


def read_users(path: str | os.PathLike[str]) -> Credentials:
    """Read a users file.

    Raises:
        OSError: it cannot be read.
        LocalProtocolError: it is no users file; see ``parse_users``.
    """
    with open(path, "rb") as file:
        octets = file.read()
    try:
        text = octets.decode("ascii")
    except UnicodeDecodeError:
        raise LocalProtocolError(f"{os.fspath(path)} is no users file: it is not ASCII") from None
    return parse_users(text)


def write_users(path: str | os.PathLike[str], credentials: Credentials) -> None:
    """Write a users file atomically, readable only by its owner.

    Raises:
        OSError: it cannot be written; an old file stays unchanged.
    """
    new = f"{os.fspath(path)}.{os.getpid()}.new"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "w", encoding="ascii") as file:
            file.write(format_users(credentials))
            file.flush()
            os.fsync(handle)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def _bad_line(number: int, reason: str) -> NoReturn:
    raise LocalProtocolError(f"line {number} of a users file: {reason}")


def _octets(number: int, text: str) -> bytes:
    try:
        return parse_base64(text)
    except MalformedError as error:
        _bad_line(number, str(error))


def _name(number: int, text: str) -> str:
    try:
        name = prepare(unquote(text, errors="strict"), "user name")
    except (UnicodeDecodeError, LocalProtocolError):
        _bad_line(number, "an invalid user name")
    if quote(name, safe="") != text:
        _bad_line(number, "a user name that is not in its normal form")
    return name


def _keys(
    number: int, mechanism: str, iterations: str, salt: bytes, stored_key: bytes, server_key: bytes
) -> ScramKeys:
    if mechanism not in HASHES:
        _bad_line(number, "an unknown mechanism")
    if len(stored_key) != len(hash_of(mechanism, b"")):
        _bad_line(number, "a key of another length than its hash")
    if not iterations.isdecimal() or not iterations.isascii() or len(iterations) > 9:
        _bad_line(number, "an invalid iteration count")
    try:
        return ScramKeys(salt, int(iterations), stored_key, server_key)
    except LocalProtocolError as error:
        _bad_line(number, str(error))
