"""Tokens of claims-based security: SAS tokens, and the expiry time of a JWT.

A SAS token permits access to a resource and everything below it until a given time. It is signed with a named
key (HMAC-SHA256 over the resource as it is written, a newline, and the
time); Azure Service Bus and Event Hubs use it. The content of a JWT can be verified only with its issuer's keys;
this module reads only its expiry time.

Knows no connection, no clock, and no keys of any user.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote

from .errors import LocalProtocolError, RemoteProtocolError

JWT: Final = "jwt"
SAS: Final = "servicebus.windows.net:sastoken"

_SCHEME: Final = "SharedAccessSignature "


@dataclass(frozen=True, slots=True)
class Token:
    """A token that can be put to ``$cbs``.

    Attributes:
        value: the token; a secret, which no repr shows.
        type: ``"jwt"``, ``"servicebus.windows.net:sastoken"``, or another type that the peer supports.
        expires: seconds since 1970; None if it is unknown.
    """

    value: str = field(repr=False)
    type: str
    expires: float | None = None

    @classmethod
    def jwt(cls, value: str) -> Token:
        """Return a JSON Web Token with its expiry time (RFC 7519, section 4.1.4).

        Nothing is verified.

        Raises:
            LocalProtocolError: ``value`` is no JWT.
        """
        parts = value.split(".")
        claims: Any = None
        if len(parts) == 5:
            return cls(value, JWT)  # it is encrypted (RFC 7516), so its expiry time cannot be read
        if len(parts) == 3:
            padded = parts[1] + "=" * (-len(parts[1]) % 4)
            try:
                claims = json.loads(base64.b64decode(padded, b"-_", validate=True))
            except (ValueError, RecursionError):
                claims = None
        if not isinstance(claims, dict):
            raise LocalProtocolError(
                "the token is no JWT, which has three parts in base64url, separated by dots"
            )
        end: Any = claims.get("exp")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, float))):
            raise LocalProtocolError("the token is no JWT: its exp is no number (RFC 7519, 4.1.4)")
        return cls(value, JWT, None if end is None else float(end))


def sign_sas(resource: str, key_name: str, key: str, expires: float) -> Token:
    """Return a new SAS token.

    Args:
        resource: the URI to permit access to, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        key_name: the name of the key.
        key: the key as it is shown, not decoded.
        expires: seconds since 1970; a fraction is dropped.

    Raises:
        LocalProtocolError: resource, name or key is empty.
    """
    if not (resource and key_name and key):
        raise LocalProtocolError("a SAS token needs a resource, the name of a key, and the key")
    written = quote(resource, safe="")
    end = str(int(expires))
    signature = quote(base64.b64encode(_signature(written, end, key)), safe="")
    text = f"{_SCHEME}sr={written}&sig={signature}&se={end}&skn={quote(key_name, safe='')}"
    return Token(text, SAS, float(end))


def _signature(resource: str, end: str, key: str) -> bytes:
    return hmac.digest(key.encode(), f"{resource}\n{end}".encode(), hashlib.sha256)


@dataclass(frozen=True, slots=True)
class SasToken:
    """A SAS token that was read, but not verified.

    Attributes:
        resource: the URI that it permits access to.
        key_name: the name of the key that should have signed it.
        expires: seconds since 1970.
    """

    resource: str
    key_name: str
    expires: float
    _signed: tuple[str, str] = field(repr=False)
    _signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> SasToken:
        """Read a SAS token with its fields in any order.

        Raises:
            RemoteProtocolError: ``text`` is no SAS token; the message quotes nothing of it.
        """
        if not text.startswith(_SCHEME):
            raise RemoteProtocolError("no SAS token: it does not begin with SharedAccessSignature")
        fields: dict[str, str] = {}
        for item in text.removeprefix(_SCHEME).split("&"):
            name, found, value = item.partition("=")
            if not found or name in fields:
                raise RemoteProtocolError("no SAS token: not fields of name=value, each once")
            fields[name] = value
        if not fields.keys() >= {"sr", "sig", "se", "skn"}:
            raise RemoteProtocolError("no SAS token: sr, sig, se and skn are required")
        end = fields["se"]
        if not (end.isascii() and end.isdecimal() and len(end) < 16):
            raise RemoteProtocolError("no SAS token: se is no number of seconds")
        try:
            signature = base64.b64decode(unquote(fields["sig"]), validate=True)
        except (binascii.Error, ValueError):
            raise RemoteProtocolError("no SAS token: sig is not base64") from None
        return cls(unquote(fields["sr"]), unquote(fields["skn"]), float(end), (fields["sr"], end), signature)

    def is_signed_by(self, key: str) -> bool:
        """Whether this key signed it; a wrong key takes the same time."""
        return hmac.compare_digest(_signature(*self._signed, key), self._signature)


def covers(resource: str, other: str) -> bool:
    """Whether permission for ``resource`` includes ``other``.

    It does if the host is the same, and the path is the same or below. The scheme, the case of the host, and a slash at the
    end do not matter.
    """
    host, path = _split(resource)
    other_host, other_path = _split(other)
    return host == other_host and is_below(other_path, path)


def is_below(path: str, other: str) -> bool:
    """Whether ``path`` is ``other``, or begins with it and a slash.

    Every path is below the empty one.
    """
    return not other or path == other or path.startswith(f"{other}/")


def path_of(resource: str) -> str:
    """Return the path after the host, without its first slash.

    If there is no host, it is the whole text. Addresses in URLs are read in the same way.
    """
    return _split(resource)[1]


def _split(resource: str) -> tuple[str, str]:
    _, found, rest = resource.partition("://")
    host, _, path = rest.partition("/") if found else ("", "", resource)
    return host.lower(), path.removesuffix("/")
