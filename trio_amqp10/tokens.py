"""Tokens of claims-based security: what they are, how a SAS token is made and read, when a JWT ends.

A SAS token says "whoever holds the key of this name permits what is below this resource until
then", signed with that key (HMAC-SHA256 over the resource as it is written, a newline, and the
time); Azure Service Bus and Event Hubs take it. What a JWT says only its issuer's keys can tell;
here nothing is read of it but its end.

Knows no connection, no clock, and nobody's keys.
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

__all__ = ["JWT", "SAS", "SasToken", "Token", "covers", "is_below", "path_of", "sign_sas"]

JWT: Final = "jwt"
SAS: Final = "servicebus.windows.net:sastoken"

_SCHEME: Final = "SharedAccessSignature "


@dataclass(frozen=True, slots=True)
class Token:
    """A token that can be put to ``$cbs``.

    Attributes:
        value: the token; a secret, which no repr shows.
        type: ``"jwt"``, ``"servicebus.windows.net:sastoken"``, or what else the peer takes.
        expires: seconds since 1970; None if it does not say.
    """

    value: str = field(repr=False)
    type: str
    expires: float | None = None

    @classmethod
    def jwt(cls, value: str) -> Token:
        """A JSON Web Token, which says itself when it ends (RFC 7519, section 4.1.4). Nothing is verified.

        Raises:
            LocalProtocolError: it is none.
        """
        parts = value.split(".")
        claims: Any = None
        if len(parts) == 5:
            return cls(value, JWT)  # encrypted (RFC 7516): nothing can be read of it, its end included
        if len(parts) == 3:
            padded = parts[1] + "=" * (-len(parts[1]) % 4)
            try:
                claims = json.loads(base64.b64decode(padded, b"-_", validate=True))
            except (ValueError, RecursionError):
                claims = None
        if not isinstance(claims, dict):
            raise LocalProtocolError("this is no JWT: three parts in base64url are due, with dots between")
        end: Any = claims.get("exp")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, float))):
            raise LocalProtocolError("a JWT whose exp is no number (RFC 7519, 4.1.4)")
        return cls(value, JWT, None if end is None else float(end))


def sign_sas(resource: str, key_name: str, key: str, expires: float) -> Token:
    """Make a SAS token.

    Args:
        resource: the URI of what it permits access to, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        key_name: of the key.
        key: the key as it is shown, not decoded.
        expires: seconds since 1970; a fraction is dropped.

    Raises:
        LocalProtocolError: no resource, name or key.
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
    """A SAS token that was read, and not yet verified.

    Attributes:
        resource: what it permits access to.
        key_name: whose key should have signed it.
        expires: seconds since 1970.
    """

    resource: str
    key_name: str
    expires: float
    _signed: tuple[str, str] = field(repr=False)
    _signature: bytes = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> SasToken:
        """Read one, its fields in any order.

        Raises:
            RemoteProtocolError: it is none; of what it says nothing is quoted.
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
            raise RemoteProtocolError("no SAS token: sr, sig, se and skn are due")
        end = fields["se"]
        if not (end.isascii() and end.isdecimal() and len(end) < 16):
            raise RemoteProtocolError("no SAS token: se is no number of seconds")
        try:
            signature = base64.b64decode(unquote(fields["sig"]), validate=True)
        except (binascii.Error, ValueError):
            raise RemoteProtocolError("no SAS token: sig is not base64") from None
        return cls(unquote(fields["sr"]), unquote(fields["skn"]), float(end), (fields["sr"], end), signature)

    def is_signed_by(self, key: str) -> bool:
        """Whether this key made it; takes as long for a wrong one."""
        return hmac.compare_digest(_signature(*self._signed, key), self._signature)


def covers(resource: str, other: str) -> bool:
    """Whether what is said of ``resource`` holds for ``other``: the same host, and the same path or one below.

    Schemes do not matter, nor the case of hosts, nor a slash at the end.
    """
    host, path = _split(resource)
    other_host, other_path = _split(other)
    return host == other_host and is_below(other_path, path)


def is_below(path: str, other: str) -> bool:
    """Whether ``path`` is ``other``, or begins with it and a slash; below the empty one is all."""
    return not other or path == other or path.startswith(f"{other}/")


def path_of(resource: str) -> str:
    """What follows the first slash after the host, as for the addresses of URLs; the whole, where there is no host."""
    return _split(resource)[1]


def _split(resource: str) -> tuple[str, str]:
    _, found, rest = resource.partition("://")
    host, _, path = rest.partition("/") if found else ("", "", resource)
    return host.lower(), path.removesuffix("/")
