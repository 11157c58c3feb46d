"""Addresses of RabbitMQ 4: ``/queues/NAME``, percent-encoded.

Knows how they are written; does not know what is there.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from trio_amqp10.container.broker.argument_values import comparable

from .http_faults import FaultError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.broker.bindings import Binding

__all__ = ["Ends", "hash_of", "location", "parse_binding", "parse_target", "queue_address", "spell"]

_HASH_OCTETS: Final = 4

_BINDING: Final = re.compile(
    r"src=(?P<source>[\w\-.~%]+);dst(?P<kind>[eq])=(?P<destination>[\w\-.~%]+);key=(?P<key>[\w\-.~%]*);args=(?P<args>[\w\-]*)",
    re.ASCII,
)


class Ends(NamedTuple):
    """What the path of a binding names.

    Attributes:
        source: the name of the exchange.
        kind: of the destination.
        destination: its name.
        key: what routing keys are compared with.
        args: the hash of its arguments (``hash_of``).
    """

    source: str
    kind: Literal["queue", "exchange"]
    destination: str
    key: str
    args: str


def location(binding: Binding) -> str:
    """The address of a binding itself."""
    kind, name = binding.destination
    source, destination, key = (quote(each, safe="") for each in (binding.source, name, binding.key))
    return f"/bindings/src={source};dst{kind[0]}={destination};key={key};args={hash_of(binding.arguments)}"


def hash_of(arguments: Mapping[str, Any]) -> str:
    """The arguments of a binding as its address has them: a hash of 32 bits in base64, as RabbitMQ; empty for none.

    The hash itself is not RabbitMQ's, which is one of Erlang terms: clients take it from the ``location`` of a binding.
    """
    if not arguments:
        return ""
    digest = blake2s(_spelt(comparable(arguments)).encode(), digest_size=_HASH_OCTETS).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _spelt(value: object) -> str:
    """One text for equal values of ``comparable``, whose sets have no order."""
    if isinstance(value, frozenset):
        members = cast("frozenset[object]", value)
        return f"{{{','.join(sorted(map(_spelt, members)))}}}"
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        return f"({','.join(map(_spelt, parts))})"
    return repr(value)


def queue_address(name: str) -> str:
    """The address of a queue."""
    return f"/queues/{quote(name, safe='')}"


def spell(address: str) -> str:
    """The one spelling of an address that may be written in many; what is none stays as it is."""
    first, *parts = address.split("/")
    return "/".join((first, *(quote(unquote(part), safe="$") for part in parts)))


def parse_target(target: str) -> tuple[list[str], Mapping[str, str]]:
    """The path of a request, decoded part by part, and its query."""
    url = urlsplit(target)
    if not url.path.startswith("/"):
        raise FaultError(400, f"{target!r} is no path: it begins with /")
    if not target.isascii():
        raise FaultError(400, f"{target!r} is no path: what is not ASCII is to be in percent-encoding")
    return url.path.split("/")[1:], dict(parse_qsl(url.query, keep_blank_values=True))


def parse_binding(segment: str) -> Ends:
    """A binding, as the last part of its path names it.

    Raises:
        FaultError: it names none.
    """
    match = _BINDING.fullmatch(segment)
    if match is None:
        raise FaultError(400, f"bad binding path segment {segment!r}")
    kind: Literal["queue", "exchange"] = "queue" if match["kind"] == "q" else "exchange"
    source, destination, key = (unquote(match[name]) for name in ("source", "destination", "key"))
    return Ends(source, kind, destination, key, match["args"])
