"""URLs of 0-9-1 and 10.3: server, virtual host and options (RabbitMQ's AMQP URI).

The path is the virtual host, percent-decoded; without a path, or with an empty one, it is ``/``. A URL of a
WebSocket or of a Unix socket needs its path for the transport, so its query names the virtual host.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import parse_url, schemes_of

if TYPE_CHECKING:
    from trio_amqp10.net.urls import Url

_PATH_IS_TRANSPORT: Final = ("amqpws", "amqpwss", "amqp+unix")

_NUMBERS: Final = ("heartbeat", "frame_max", "channel_max", "connection_timeout")
_WORDS: Final = (
    "auth_mechanism",
    "vhost",
    "cacertfile",
    "certfile",
    "keyfile",
    "server_name_indication",
    "verify",
)


@dataclass(frozen=True, slots=True)
class Place:
    """One place to dial.

    Attributes:
        url: host, port, credentials and path, for the transport.
        virtual_host: the virtual host to open.
        numbers: numeric options of the query: ``heartbeat`` in seconds, ``frame_max`` in octets,
            ``channel_max``, ``connection_timeout`` in milliseconds.
        words: text options of the query.
        mechanisms: names of the SASL mechanisms that the query permits, in its order; none for no restriction.
    """

    url: Url
    virtual_host: str = "/"
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    words: dict[str, str] = field(default_factory=dict[str, str])
    mechanisms: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.url}, virtual host {self.virtual_host!r}"


def parse_place(text: str, protocol: str = "amqp091") -> Place:
    """Parse ``amqp091://[user[:password]@]host[:port][/vhost][?option=value&...]``.

    ``amqp091s://`` uses TLS; ``amqp091ws://`` and ``amqp091wss://`` a WebSocket; ``amqp091+unix:///path`` a
    Unix socket. ``amqp://`` and so on mean the same here.

    Args:
        text: the URL.
        protocol: the first part of its scheme, instead of ``amqp091``.

    Raises:
        LocalProtocolError: the URL is not valid; the message shows no password.
    """
    scheme, found, rest = text.partition("://")
    scheme = scheme.lower()  # RFC 3986, section 3.1
    rest, query = _split_query(rest)
    if scheme == "amqp+tls":
        raise LocalProtocolError(
            f"amqp+tls:// is TLS negotiated inside AMQP 1.0 and cannot be used here: use {protocol}s://"
        )
    url = parse_url(f"{scheme}{found}{rest}", schemes_of(protocol))
    words: dict[str, str] = {}
    numbers: dict[str, int] = {}
    mechanisms: list[str] = []
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        value = unquote(value)
        if key in _NUMBERS:
            numbers[key] = _number(key, value)
        elif key == "auth_mechanism":
            mechanisms.append(value.upper())
        elif key in _WORDS:
            words[key] = value
        else:
            shown = "one name" if "@" in key or ":" in key else repr(key)  # it may be part of a password
            raise LocalProtocolError(
                f"the query of the URL: {shown} is not an option; options are {', '.join((*_NUMBERS, *_WORDS))}"
            )
    if (verify := words.pop("verify", "verify_peer")) != "verify_peer":
        raise LocalProtocolError(
            f"the query of the URL: verify={verify!r}: expected verify_peer; "
            "pass insecure=True to accept any server certificate"
        )
    named = words.pop("vhost", None)
    host = (named if url.scheme in _PATH_IS_TRANSPORT else url.address if named is None else named) or "/"
    return Place(replace(url, address=None), host, numbers, words, tuple(mechanisms))


def _split_query(rest: str) -> tuple[str, str]:
    """Split at the first ``?`` after the credentials."""
    at = rest.rfind("@") + 1
    mark = rest.find("?", at)
    return (rest, "") if mark < 0 else (rest[:mark], rest[mark + 1 :])


def _number(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise LocalProtocolError(f"the query of the URL: {key}={value!r} is not a number")
    return int(value)
