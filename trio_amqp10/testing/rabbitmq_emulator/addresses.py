"""Addresses of RabbitMQ 4: ``/queues/NAME``, percent-encoded.

Knows their syntax; does not know which of them exist.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from trio_amqp10.broker.exchanges.argument_equality import comparable

from .http_faults import FaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.broker.exchanges.bindings import Binding

_HASH_OCTETS: Final = 4

_BINDING: Final = re.compile(
    r"src=(?P<source>[\w\-.~%]+);dst(?P<kind>[eq])=(?P<destination>[\w\-.~%]+);key=(?P<key>[\w\-.~%]*);args=(?P<args>[\w\-]*)",
    re.ASCII,
)


class Ends(NamedTuple):
    """The parts of the path of a binding.

    Attributes:
        source: the name of the exchange.
        kind: the kind of the destination.
        destination: the name of the destination.
        key: the key that routing keys are compared with.
        args: the hash of the arguments (``hash_of``).
    """

    source: str
    kind: Literal["queue", "exchange"]
    destination: str
    key: str
    args: str


def location(binding: Binding) -> str:
    """Return the address of a binding."""
    kind, name = binding.destination
    source, destination, key = (quote(each, safe="") for each in (binding.source, name, binding.key))
    return f"/bindings/src={source};dst{kind[0]}={destination};key={key};args={hash_of(binding.arguments)}"


def hash_of(arguments: Mapping[str, Any]) -> str:
    """Return the hash of a binding's arguments, for its address.

    The hash has 32 bits, in base64, as in RabbitMQ; it is empty if there are no arguments. The function differs from RabbitMQ's,
    which hashes Erlang terms: clients take the hash from the ``location`` of a binding.
    """
    if not arguments:
        return ""
    digest = blake2s(_spelt(comparable(arguments)).encode(), digest_size=_HASH_OCTETS).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _spelt(value: object) -> str:
    """Return a text that is the same for equal values of ``comparable``.

    Its sets have no order.
    """
    if isinstance(value, frozenset):
        members = cast("frozenset[object]", value)
        return f"{{{','.join(sorted(map(_spelt, members)))}}}"
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return f"({','.join(map(_spelt, parts))})"
    return repr(value)


def queue_address(name: str) -> str:
    """Return the address of a queue."""
    return f"/queues/{quote(name, safe='')}"


def spell(address: str) -> str:
    """Return the canonical spelling of an address; other texts are unchanged."""
    first, *parts = address.split("/")
    return "/".join((first, *(quote(unquote(part), safe="$") for part in parts)))


def parse_target(target: str) -> tuple[list[str], Mapping[str, str]]:
    """Split a request's target into the decoded parts of its path, and its query."""
    url = urlsplit(target)
    if not url.path.startswith("/"):
        raise FaultError(400, f"{target!r} is not a path: a path begins with /")
    if not target.isascii():
        raise FaultError(400, f"{target!r} is not a path: percent-encode characters other than ASCII")
    return url.path.split("/")[1:], dict(parse_qsl(url.query, keep_blank_values=True))


def parse_binding(segment: str) -> Ends:
    """Parse a binding from the last part of its path.

    Raises:
        FaultError: the text is not the path of a binding.
    """
    match = _BINDING.fullmatch(segment)
    if match is None:
        raise FaultError(400, f"bad binding path segment {segment!r}")
    kind: Literal["queue", "exchange"] = "queue" if match["kind"] == "q" else "exchange"
    source, destination, key = (unquote(match[name]) for name in ("source", "destination", "key"))
    return Ends(source, kind, destination, key, match["args"])
