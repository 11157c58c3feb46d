"""The form of AMQP 0-9-1, number -91: a message as it was published, with the place to which that was done.

=========  =============================================================================
octets     meaning
=========  =============================================================================
1          flags: bit 0, it was given out before
4          failed attempts to deliver it
1 + n      the exchange, a short string
1 + n      the routing key, a short string
4          octets of the properties
n          flags and values of the properties, as they came (4.2.6.1)
rest       the body
=========  =============================================================================

So a message goes from publisher to consumer with every octet of its properties, and is translated for consumers of
another protocol alone. A dead letter gets the headers ``x-death``, ``x-first-death-*`` and ``x-last-death-*``.

Knows properties and headers; knows no channel.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.fast import NO_PROPERTIES
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.translate import to_publication, to_sections
from trio_amqp10.amqp091.values import Int64
from trio_amqp10.container.broker.death_history import REASONS, recorded, summary
from trio_amqp10.container.broker.death_history import Death as Recorded
from trio_amqp10.container.nodes.content import Content, Publication, Terms
from trio_amqp10.container.nodes.form_registry import Form, register
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.container.nodes.content import Death

__all__ = ["NUMBER", "Published", "deaths_of", "items_of", "keys_of", "published", "to_published"]

NUMBER: Final = -91
"""The number of this form; stores write it."""

_PERSISTENT: Final = 2
_REDELIVERED: Final = 1
_HEAD: Final = struct.Struct(">BI")
_SIZE: Final = struct.Struct(">I")
_MOST_FAILURES: Final = 0xFFFFFFFF
_DEATHS: Final = "x-death"


_LEAST: Final = _HEAD.size + 1 + 1 + _SIZE.size
"""Octets of a message whose names, properties and body are empty."""

_LOWEST: Final = Terms(0)


def _encoded(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


class Published(Content):
    """A message that was published in 0-9-1.

    Args:
        exchange, routing_key: where it was published to.
        raw: flags and values of its properties.
        body: its octets.
        properties: what ``raw`` says, if that is known already.
        redelivered: whether it was given out before.
        failures: failed attempts to deliver it.
        left: milliseconds to live, where these are less than it says.

    Attributes:
        exchange, routing_key, raw, body, redelivered, failures: as given.
    """

    __slots__ = ("_properties", "body", "exchange", "failures", "raw", "redelivered", "routing_key")

    def __init__(  # pyright: ignore[reportMissingSuperCall] - it would make the octets of every message
        self,
        exchange: str,
        routing_key: str,
        raw: bytes,
        body: bytes,
        properties: BasicProperties | None = None,
        *,
        redelivered: bool = False,
        failures: int = 0,
        left: int | None = None,
    ) -> None:
        self.exchange: Final = exchange
        self.routing_key: str = routing_key
        self.raw: Final = raw
        self.body: bytes = body
        self.redelivered: Final = redelivered
        self.failures: int = failures
        if properties is None:
            properties = BasicProperties.decode(raw, 0, USUAL) if raw != NO_PROPERTIES else BasicProperties()
        self._properties = properties
        expiration, priority = properties.expiration, properties.priority
        ttl = int(expiration) if left is None and expiration is not None else left
        self.number = NUMBER
        self.terms: Terms = Terms(priority or 0, ttl) if priority or ttl is not None else _LOWEST
        self.durable: bool = properties.delivery_mode == _PERSISTENT
        self._standard = None
        size = _LEAST + len(raw) + len(body) + len(exchange) + len(routing_key)
        if not (exchange.isascii() and routing_key.isascii()):
            size += len(_encoded(exchange)) + len(_encoded(routing_key)) - len(exchange) - len(routing_key)
        self.size: int = size

    @property
    def octets(self) -> bytes:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """The message in this form; made each time, as most messages never need it."""
        place = _encoded(self.exchange), _encoded(self.routing_key)
        return b"".join(
            (
                _HEAD.pack(_REDELIVERED if self.redelivered else 0, self.failures),
                *(part for name in place for part in (bytes((len(name),)), name)),
                _SIZE.pack(len(self.raw)),
                self.raw,
                self.body,
            )
        )

    @property
    def properties(self) -> BasicProperties:
        """Its properties; not to be changed."""
        return self._properties

    @property
    def headers(self) -> Mapping[str, Any]:
        return self._properties.headers or {}

    def _with(self, **changes: Any) -> Published:
        """The same, but for these arguments."""
        same: dict[str, Any] = {
            "exchange": self.exchange,
            "routing_key": self.routing_key,
            "raw": self.raw,
            "body": self.body,
            "properties": self._properties,
            "redelivered": self.redelivered,
            "failures": self.failures,
            "left": self.terms.ttl,
        }
        return Published(**same | changes)

    def aged(self, left: int) -> Content:
        """What consumers of 0-9-1 see stays as it was published; a translation has what is left."""
        return self._with(left=left)

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:  # noqa: ARG002
        """It was given out before, and perhaps in vain; 0-9-1 has no place for annotations of a receiver."""
        if self.redelivered and not failed:
            return self
        return self._with(redelivered=True, failures=min(self.failures + failed, _MOST_FAILURES))

    @property
    def publication(self) -> Publication:
        return Publication(self.exchange, keys_of(self))

    def published_to(self, exchange: str, routing_key: str) -> Content:
        if self.exchange == exchange and self.routing_key == routing_key:
            return self
        return self._with(exchange=exchange, routing_key=routing_key)

    @property
    def deaths(self) -> list[Recorded]:
        return deaths_of(self.headers)

    def dead(
        self,
        source: str,
        reason: Death,
        now: float,
        publication: Publication | None = None,
        condition: str | None = None,
        description: str | None = None,
    ) -> Content:
        """With one more death in its headers; 0-9-1 has no place for the error of the receiver."""
        _ = condition, description
        properties, headers = self._properties, self.headers
        if publication is None:
            publication = self.publication
        death = Recorded(
            queue=source,
            reason=REASONS[reason],
            time=int(now),
            exchange=publication.exchange,
            routing_keys=publication.routing_keys,
            original_expiration=properties.expiration,
        )
        deaths = recorded(self.deaths, death)
        before = {key: value for key, value in headers.items() if isinstance(value, str)}
        marked = {**headers, _DEATHS: [_entry(each) for each in deaths], **summary(before, death)}
        dead = replace(properties, headers=marked, expiration=None)
        return Published(self.exchange, self.routing_key, dead.encode(USUAL), self.body, dead)

    def translated(self) -> bytes:
        properties, ttl = self._properties, self.terms.ttl
        if properties.expiration is not None and ttl is not None:
            properties = replace(properties, expiration=str(ttl))
        return to_sections(
            properties,
            self.body,
            exchange=self.exchange,
            routing_key=self.routing_key,
            failures=self.failures,
            redelivered=self.redelivered,
        )


def published(octets: bytes) -> Published:
    """The message that these octets are.

    Raises:
        ValueError: they are of no such message.
    """
    try:
        flags, failures = _HEAD.unpack_from(octets)
        exchange, pos = _read_name(octets, _HEAD.size)
        key, pos = _read_name(octets, pos)
        start = pos + _SIZE.size
        end = start + _SIZE.unpack_from(octets, pos)[0]
        if end > len(octets):
            raise ValueError("a message of the form -91 ends within its properties")
        return Published(
            exchange,
            key,
            octets[start:end],
            octets[end:],
            redelivered=bool(flags & _REDELIVERED),
            failures=failures,
        )
    except (IndexError, struct.error, ReplyError) as fault:
        raise ValueError(f"no message of the form -91: {fault}") from fault


def to_published(content: Content, key: str, *, like_rabbitmq: bool = False) -> Published:
    """What a consumer of 0-9-1 gets of any content.

    Args:
        content: in any form.
        key: the routing key of a message that names none: the name of its queue.
        like_rabbitmq: whether a message of AMQP 1.0 that does not say whether it is durable is, and whether one whose body is a
            text is delivered as encoded sections.
    """
    if isinstance(content, Published):
        return content
    try:
        made = to_publication(
            content.as_message(), durable=like_rabbitmq, plain_text=not like_rabbitmq, reply_to=_queue_name
        )
        raw = made.properties.encode(USUAL)
    except (
        RemoteProtocolError,
        LocalProtocolError,
    ):  # its octets, as the body of a message without properties
        return Published("", key, NO_PROPERTIES, content.octets)
    return Published(
        made.exchange or "",
        key if made.routing_key is None else made.routing_key,
        raw,
        made.body,
        made.properties,
    )


def _queue_name(address: str) -> str:
    """The queue that an address of RabbitMQ names; any other address as it is."""
    return address.removeprefix("/queues/")


def _read_name(octets: bytes, pos: int) -> tuple[str, int]:
    end = pos + 1 + octets[pos]
    return octets[pos + 1 : end].decode(errors="surrogateescape"), end


def keys_of(content: Published) -> tuple[str, ...]:
    """Its routing keys: its own, and those of the header CC."""
    return (
        content.routing_key,
        *(key for key in items_of(content.headers.get("CC")) if isinstance(key, str)),
    )


def items_of(value: object) -> Sequence[Any]:
    """The items of an array; none of any other value."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def deaths_of(headers: Mapping[str, Any]) -> list[Recorded]:
    """The deaths that the header ``x-death`` tells of; entries that are none are left out."""
    found: list[Recorded] = []
    for entry in items_of(headers.get(_DEATHS)):
        try:
            when = entry["time"]
            found.append(
                Recorded(
                    queue=str(entry["queue"]),
                    reason=str(entry["reason"]),
                    count=int(entry["count"]),
                    time=int(when.timestamp() if isinstance(when, datetime) else when),
                    exchange=str(entry["exchange"]),
                    routing_keys=tuple(map(str, entry["routing-keys"])),
                    original_expiration=entry.get("original-expiration"),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return found


def _entry(death: Recorded) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "count": Int64(death.count),
        "reason": death.reason,
        "queue": death.queue,
        "time": datetime.fromtimestamp(death.time, UTC),
        "exchange": death.exchange,
        "routing-keys": list(death.routing_keys),
    }
    if death.original_expiration is not None:
        entry["original-expiration"] = death.original_expiration
    return entry


register(NUMBER, Form(published))
