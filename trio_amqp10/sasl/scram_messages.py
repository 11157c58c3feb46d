"""SCRAM, for both sides: the messages and the keys (RFC 5802, 3, 5 and 7).

The grammar is read to the letter: attributes in their order, each once, Base64 in its one
spelling. Extensions that need not be understood are passed over; ``m=``, which announces one that
must be, is refused (section 5.1). So is any octet that leaves room for a second reading.

All of it is hashlib and hmac. The library scramp would not do here: it fixes the cap on
iterations, cannot take ``tls-exporter``, derives keys in the middle of a call (so that a long
derivation cannot leave the event loop), takes salts of 12 octets and more only, and imports ssl
and a source of randomness. It is what the tests hold this against.

Knows neither side, no connection and no user.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import new, pbkdf2_hmac
from hmac import digest
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "BINDINGS",
    "HASHES",
    "MAX_ITERATIONS",
    "MIN_ITERATIONS",
    "PLUS",
    "QUICK_ITERATIONS",
    "ClientFinal",
    "ClientFirst",
    "MalformedError",
    "ServerFirst",
    "auth_message",
    "base64",
    "base_name",
    "binding_input",
    "derive_client_and_server_key",
    "escape_name",
    "hash_of",
    "hmac_of",
    "make_nonce",
    "parse_base64",
    "parse_client_final",
    "parse_client_first",
    "parse_name",
    "parse_server_final",
    "parse_server_first",
    "xor",
]

HASHES: Final[Mapping[str, str]] = {
    "SCRAM-SHA-512": "sha512",
    "SCRAM-SHA-256": "sha256",
    "SCRAM-SHA-1": "sha1",
}
"""The hash of each mechanism, best first."""
PLUS: Final = "-PLUS"
"""What the name of a mechanism ends in that is bound to the TLS connection."""
BINDINGS: Final = ("tls-server-end-point", "tls-exporter")
"""Types of channel binding, best known first. ``tls-unique`` is not among them: it is undefined
for TLS 1.3, and was broken before (RFC 9266)."""
MIN_ITERATIONS: Final = 4096
"""RFC 5802, section 5.1, and RFC 7677, section 4."""
MAX_ITERATIONS: Final = 1_000_000
"""About a second of computing: what asks a client for more means harm (RFC 5802, section 9)."""
QUICK_ITERATIONS: Final = 50_000
"""What an event loop bears; more is work for a thread."""

NONCE_OCTETS: Final = 24
_MAX_DIGITS: Final = 9
_RESERVED: Final = frozenset("anmrcsipve")
_ATTRIBUTE: Final = re.compile(r"([A-Za-z])=([^\0,]+)\Z")
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+\Z")
_NAME: Final = re.compile(r"(?:[^=,\0]|=2C|=3D)+\Z")
_NUMBER: Final = re.compile(r"[1-9][0-9]*\Z")
_BINDING_FLAG: Final = re.compile(r"(?:([ny])|p=([A-Za-z0-9.-]+))\Z")


class MalformedError(ValueError):
    """A message that the grammar does not allow; says what is wrong and quotes none of it."""


# -- keys (section 3)


def base_name(mechanism: str) -> str:
    """The mechanism without ``-PLUS``: what decides on the hash and on the keys."""
    return mechanism.removesuffix(PLUS)


def derive_client_and_server_key(
    mechanism: str, password: str, salt: bytes, iterations: int
) -> tuple[bytes, bytes]:
    """ClientKey and ServerKey of a prepared password; takes about a microsecond an iteration."""
    salted = pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return hmac_of(mechanism, salted, b"Client Key"), hmac_of(mechanism, salted, b"Server Key")


def hash_of(mechanism: str, data: bytes) -> bytes:
    """H() of section 2.2."""
    return new(HASHES[mechanism], data).digest()


def hmac_of(mechanism: str, key: bytes, data: bytes) -> bytes:
    """HMAC() of section 2.2."""
    return digest(key, data, HASHES[mechanism])


def xor(left: bytes, right: bytes) -> bytes:
    """Octet by octet, of two strings of one length."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


# -- writing (sections 5.1 and 7)


def base64(data: bytes) -> str:
    """As text."""
    return b64encode(data).decode("ascii")


def make_nonce(entropy: Callable[[int], bytes]) -> str:
    """32 characters that nobody can guess, none of them a comma."""
    return base64(entropy(NONCE_OCTETS))


def escape_name(name: str) -> str:
    """A saslname: a comma and an equals sign mean something else in these messages."""
    return name.replace("=", "=3D").replace(",", "=2C")


def binding_input(header: str, data: bytes) -> str:
    """The value of ``c=``: the header as it was sent, and what the exchange is bound to."""
    return base64(header.encode() + data)


def auth_message(first_bare: str, server_first: str, final_without_proof: str) -> bytes:
    """What both signatures are over: all that was said, so that nobody on the way can change it."""
    return f"{first_bare},{server_first},{final_without_proof}".encode()


# -- reading (section 7)


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """client-first-message: ``n,,n=user,r=nonce``."""

    header: str
    """As it came, with both commas: it comes again in ``c=``."""
    flag: str
    """``n``, ``y`` or ``p``."""
    binding: str | None
    """The type of channel binding that goes with ``p``."""
    authzid: str
    username: str
    nonce: str
    bare: str


@dataclass(frozen=True, slots=True)
class ServerFirst:
    """server-first-message: ``r=nonce,s=salt,i=4096``."""

    nonce: str
    salt: bytes
    iterations: int
    text: str


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """client-final-message: ``c=biws,r=nonce,p=proof``."""

    binding: str
    nonce: str
    proof: bytes
    without_proof: str


def parse_client_first(message: bytes) -> ClientFirst:
    """Raises MalformedError."""
    text = _text(message)
    flag, comma, rest = text.partition(",")
    authzid, second, bare = rest.partition(",")
    matched = _BINDING_FLAG.match(flag)
    if not (comma and second and matched):
        raise MalformedError("a GS2 header that is none")
    if authzid:
        if not authzid.startswith("a="):
            raise MalformedError("an authorization identity without its a=")
        authzid = parse_name(authzid[2:])
    name, nonce = _values(bare, "nr")
    return ClientFirst(
        header=f"{flag},{rest[: len(rest) - len(bare)]}",
        flag=matched[1] or "p",
        binding=matched[2],
        authzid=authzid,
        username=parse_name(name),
        nonce=_nonce(nonce),
        bare=bare,
    )


def parse_server_first(message: bytes) -> ServerFirst:
    """Raises MalformedError."""
    text = _text(message)
    nonce, salt, iterations = _values(text, "rsi")
    if not _NUMBER.match(iterations) or len(iterations) > _MAX_DIGITS:
        raise MalformedError("an iteration count that is none")
    return ServerFirst(_nonce(nonce), parse_base64(salt), int(iterations), text)


def parse_client_final(message: bytes) -> ClientFinal:
    """Raises MalformedError."""
    text = _text(message)
    without_proof, comma, proof = text.rpartition(",")
    if not comma:
        raise MalformedError("a final message without a proof")
    binding, nonce = _values(without_proof, "cr")
    (proof,) = _values(proof, "p")
    return ClientFinal(binding, _nonce(nonce), parse_base64(proof), without_proof)


def parse_server_final(message: bytes) -> bytes | None:
    """The server's signature, or None if it is an error (``e=``) instead. Raises MalformedError."""
    text = _text(message)
    if text.startswith("e="):
        _values(text, "e")
        return None
    (signature,) = _values(text, "v")
    return parse_base64(signature)


def parse_name(text: str) -> str:
    """A saslname as the name that it spells. Raises MalformedError."""
    if not _NAME.match(text):
        raise MalformedError("a name with a comma or an equals sign that is not escaped, or empty")
    return text.replace("=2C", ",").replace("=3D", "=")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise MalformedError("octets that are not UTF-8") from None


def _values(text: str, wanted: str) -> list[str]:
    """The values of the attributes named by the letters of ``wanted``; then extensions may follow."""
    names: list[str] = []
    values: list[str] = []
    for part in text.split(","):
        matched = _ATTRIBUTE.match(part)
        if matched is None:
            raise MalformedError("an attribute that is none")
        names.append(matched[1])
        values.append(matched[2])
    if names[0] == "m":
        raise MalformedError("an extension that must be understood")
    if names[: len(wanted)] != list(wanted) or not _RESERVED.isdisjoint(names[len(wanted) :]):
        raise MalformedError(f"attributes other than {', '.join(wanted)}, or in another order")
    return values[: len(wanted)]


def _nonce(text: str) -> str:
    if not _NONCE.match(text):
        raise MalformedError("a nonce with characters that are not printable")
    return text


def parse_base64(text: str) -> bytes:
    """Octets of Base64 in its one spelling. Raises MalformedError."""
    try:
        octets = b64decode(text.encode(), validate=True)
    except Base64Error:
        raise MalformedError("Base64 that is none") from None
    if base64(octets) != text:  # spare bits may be anything to the decoder
        raise MalformedError("Base64 in another spelling than its own")
    return octets
