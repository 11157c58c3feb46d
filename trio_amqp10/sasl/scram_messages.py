"""SCRAM, for both sides: the messages and the keys (RFC 5802, 3, 5 and 7).

The grammar is applied strictly: attributes in their order, each once, Base64 in canonical
form. Optional extensions are skipped; ``m=``, which announces a mandatory
extension, is refused (section 5.1), as is any ambiguous octet.

Only hashlib and hmac are used. The library scramp is not suitable: it fixes the limit on
iterations, does not support ``tls-exporter``, derives keys within a call (so that a long
derivation cannot leave the event loop), accepts only salts of at least 12 octets, and imports ssl
and a source of randomness. The tests compare this module with it.

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

HASHES: Final[Mapping[str, str]] = {
    "SCRAM-SHA-512": "sha512",
    "SCRAM-SHA-256": "sha256",
    "SCRAM-SHA-1": "sha1",
}
"""The hash of each mechanism, best first."""
PLUS: Final = "-PLUS"
"""The suffix of mechanisms that are bound to the TLS connection."""
BINDINGS: Final = ("tls-server-end-point", "tls-exporter")
"""Types of channel binding, most common first.

``tls-unique`` is missing: it is undefined for TLS 1.3, and was broken before (RFC 9266).
"""
MIN_ITERATIONS: Final = 4096
"""The least iterations (RFC 5802, section 5.1; RFC 7677, section 4)."""
MAX_ITERATIONS: Final = 1_000_000
"""About a second of computing.

A server that asks a client for more is malicious (RFC 5802, section 9).
"""
QUICK_ITERATIONS: Final = 50_000
"""The most iterations in an event loop; more are done in a thread."""

NONCE_OCTETS: Final = 24
_MAX_DIGITS: Final = 9
_RESERVED: Final = frozenset("anmrcsipve")
_ATTRIBUTE: Final = re.compile(r"([A-Za-z])=([^\0,]+)\Z")
_NONCE: Final = re.compile(r"[\x21-\x2b\x2d-\x7e]+\Z")
_NAME: Final = re.compile(r"(?:[^=,\0]|=2C|=3D)+\Z")
_NUMBER: Final = re.compile(r"[1-9][0-9]*\Z")
_BINDING_FLAG: Final = re.compile(r"(?:([ny])|p=([A-Za-z0-9.-]+))\Z")


class MalformedError(ValueError):
    """An invalid message; the reason quotes nothing of it."""


# -- keys (section 3)


def base_name(mechanism: str) -> str:
    """Return the mechanism without ``-PLUS``; hash and keys are the same."""
    return mechanism.removesuffix(PLUS)


def derive_client_and_server_key(
    mechanism: str, password: str, salt: bytes, iterations: int
) -> tuple[bytes, bytes]:
    """Return ClientKey and ServerKey of a prepared password.

    It takes about a microsecond per iteration.
    """
    salted = pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return hmac_of(mechanism, salted, b"Client Key"), hmac_of(mechanism, salted, b"Server Key")


def hash_of(mechanism: str, data: bytes) -> bytes:
    """Return H() of section 2.2."""
    return new(HASHES[mechanism], data).digest()


def hmac_of(mechanism: str, key: bytes, data: bytes) -> bytes:
    """Return HMAC() of section 2.2."""
    return digest(key, data, HASHES[mechanism])


def xor(left: bytes, right: bytes) -> bytes:
    """Return the XOR of two octet strings of the same length."""
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


# -- writing (sections 5.1 and 7)


def base64(data: bytes) -> str:
    """Return Base64 as text."""
    return b64encode(data).decode("ascii")


def make_nonce(entropy: Callable[[int], bytes]) -> str:
    """Return 32 unpredictable characters without a comma."""
    return base64(entropy(NONCE_OCTETS))


def escape_name(name: str) -> str:
    """Return a saslname, in which comma and equals sign are escaped."""
    return name.replace("=", "=3D").replace(",", "=2C")


def binding_input(header: str, data: bytes) -> str:
    """Return the value of ``c=``: the header as it was sent, and the channel binding."""
    return base64(header.encode() + data)


def auth_message(first_bare: str, server_first: str, final_without_proof: str) -> bytes:
    """Return the text that both signatures cover.

    It contains all messages, so that an attacker cannot change them.
    """
    return f"{first_bare},{server_first},{final_without_proof}".encode()


# -- reading (section 7)


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """client-first-message: ``n,,n=user,r=nonce``."""

    header: str
    """The GS2 header as received, with both commas; ``c=`` repeats it."""
    flag: str
    """``n``, ``y`` or ``p``."""
    binding: str | None
    """The type of channel binding after ``p=``; otherwise None."""
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
    """Return the client's first message. Raises MalformedError."""
    text = _text(message)
    flag, comma, rest = text.partition(",")
    authzid, second, bare = rest.partition(",")
    matched = _BINDING_FLAG.match(flag)
    if not (comma and second and matched):
        raise MalformedError("an invalid GS2 header")
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
    """Return the server's first message. Raises MalformedError."""
    text = _text(message)
    nonce, salt, iterations = _values(text, "rsi")
    if not _NUMBER.match(iterations) or len(iterations) > _MAX_DIGITS:
        raise MalformedError("an invalid iteration count")
    return ServerFirst(_nonce(nonce), parse_base64(salt), int(iterations), text)


def parse_client_final(message: bytes) -> ClientFinal:
    """Return the client's final message. Raises MalformedError."""
    text = _text(message)
    without_proof, comma, proof = text.rpartition(",")
    if not comma:
        raise MalformedError("a final message without a proof")
    binding, nonce = _values(without_proof, "cr")
    (proof,) = _values(proof, "p")
    return ClientFinal(binding, _nonce(nonce), parse_base64(proof), without_proof)


def parse_server_final(message: bytes) -> bytes | None:
    """Return the server's signature, or None for an error (``e=``).

    Raises MalformedError.
    """
    text = _text(message)
    if text.startswith("e="):
        _values(text, "e")
        return None
    (signature,) = _values(text, "v")
    return parse_base64(signature)


def parse_name(text: str) -> str:
    """Return the name that a saslname stands for. Raises MalformedError."""
    if not _NAME.match(text):
        raise MalformedError("a name with a comma or an equals sign that is not escaped, or empty")
    return text.replace("=2C", ",").replace("=3D", "=")


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise MalformedError("octets that are not UTF-8") from None


def _values(text: str, wanted: str) -> list[str]:
    """Return the values of the attributes ``wanted``, by their letters, in this order.

    Extensions may follow them.
    """
    names: list[str] = []
    values: list[str] = []
    for part in text.split(","):
        matched = _ATTRIBUTE.match(part)
        if matched is None:
            raise MalformedError("an invalid attribute")
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
    """Return the octets of canonical Base64. Raises MalformedError."""
    try:
        octets = b64decode(text.encode(), validate=True)
    except Base64Error:
        raise MalformedError("invalid Base64") from None
    if base64(octets) != text:  # the decoder ignores the unused bits of the last character
        raise MalformedError("Base64 that is not canonical")
    return octets
