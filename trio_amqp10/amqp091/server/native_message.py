"""The form of AMQP 0-9-1 (-91): a message with its exchange and routing key.

=========  =============================================================================
octets     meaning
=========  =============================================================================
1          flags: bit 0, whether it was delivered before
4          failed attempts to deliver it
1 + n      the exchange, a short string
1 + n      the routing key, a short string
4          octets of the properties
n          flags and values of the properties, as received (4.2.6.1)
rest       the body
=========  =============================================================================

So a message reaches a consumer with every octet of its properties, and is translated only for consumers of
another protocol. A dead letter gets the headers ``x-death``, ``x-first-death-*`` and ``x-last-death-*``.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp091.conversion.translate import to_publication, to_sections
from trio_amqp10.amqp091.engine.contents_shortcut import NO_PROPERTIES
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.typed_values import Int64, LongString
from trio_amqp10.broker.exchanges.death_history import MOST_DEATHS, REASONS, checked, recorded, summary
from trio_amqp10.broker.exchanges.death_history import Death as Recorded
from trio_amqp10.broker.nodes.content import Content, Publication, Terms
from trio_amqp10.broker.nodes.form_registry import Form, register
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.broker.nodes.content import Death

NUMBER: Final = -91
"""The number of this form in stores."""

_PERSISTENT: Final = 2
_REDELIVERED: Final = 1
_HEAD: Final = struct.Struct(">BI")
_SIZE: Final = struct.Struct(">I")
_MOST_FAILURES: Final = 0xFFFFFFFF
_DEATHS: Final = "x-death"
_LATEST: Final = 253_402_300_799
"""The last second of the year 9999."""


_LEAST: Final = _HEAD.size + 1 + 1 + _SIZE.size
"""Octets of a message with empty names, properties and body."""

_LOWEST: Final = Terms(0)


def _encoded(name: str) -> bytes:
    return name.encode(errors="surrogateescape")


class Published(Content):
    """A message that was published in 0-9-1.

    Args:
        exchange, routing_key: those of the publish.
        raw: flags and values of its properties.
        body: its octets.
        properties: the decoded ``raw``, if it is already known.
        redelivered: whether it was delivered before.
        failures: failed attempts to deliver it.
        left: milliseconds to live, if fewer than in its expiration.

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
        self._message = self._sections = None
        size = _LEAST + len(raw) + len(body) + len(exchange) + len(routing_key)
        if not (exchange.isascii() and routing_key.isascii()):
            size += len(_encoded(exchange)) + len(_encoded(routing_key)) - len(exchange) - len(routing_key)
        self.size: int = size

    @property
    def octets(self) -> bytes:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """The message in this form; encoded on each use, because it is seldom needed."""
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
        """The properties, which must not be changed."""
        return self._properties

    @property
    def headers(self) -> Mapping[str, Any]:
        return self._properties.headers or {}

    def _with(self, **changes: Any) -> Published:
        """Return a copy with these arguments changed."""
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
        """Return a copy with this time to live.

        Consumers of 0-9-1 see the expiration as it was published; a translation has the time that is left.
        """
        return self._with(left=left)

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:  # noqa: ARG002
        """Return a copy that was delivered before, perhaps in vain.

        0-9-1 has no place for annotations of a receiver.
        """
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
        """Return a copy with one more death in its headers.

        0-9-1 has no place for the error of the receiver.
        """
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
        earlier = self.deaths
        deaths = recorded(earlier, death)
        known = headers.items() if earlier else ()
        before = {key: _name(value) for key, value in known if isinstance(value, (str, LongString))}
        names = {key: _long(name) for key, name in summary(before, death).items()}
        marked = {**headers, _DEATHS: [_entry(each) for each in deaths], **names}
        dead = replace(properties, headers=marked, expiration=None)
        return Published(self.exchange, self.routing_key, dead.encode(USUAL), self.body, dead)

    @property
    def body_size(self) -> int:
        return len(self.body)

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
    """Return the message that these octets encode.

    Raises:
        ValueError: they are not such a message.
    """
    try:
        flags, failures = _HEAD.unpack_from(octets)
        exchange, pos = _read_name(octets, _HEAD.size)
        key, pos = _read_name(octets, pos)
        start = pos + _SIZE.size
        end = start + _SIZE.unpack_from(octets, pos)[0]
        if end > len(octets):
            raise ValueError("not a message of the form -91: it ends within its properties")
        return Published(
            exchange,
            key,
            octets[start:end],
            octets[end:],
            redelivered=bool(flags & _REDELIVERED),
            failures=failures,
        )
    except (IndexError, struct.error, ReplyError) as fault:
        raise ValueError(f"not a message of the form -91: {fault}") from fault


def to_published(content: Content, key: str, *, like_rabbitmq: bool = False) -> Published:
    """Return the message for a consumer of 0-9-1.

    Args:
        content: a message in any form.
        key: the routing key of a message without one: the name of its queue.
        like_rabbitmq: whether AMQP 1.0 messages without ``durable`` are persistent, and text bodies are
            delivered as encoded sections.
    """
    if isinstance(content, Published):
        return content
    try:
        made = to_publication(
            content.as_message(), durable=like_rabbitmq, plain_text=not like_rabbitmq, reply_to=_queue_name
        )
        raw = made.properties.encode(USUAL)
    except (RemoteProtocolError, LocalProtocolError):
        # A message that cannot be translated is delivered as octets without properties.
        return Published("", key, NO_PROPERTIES, content.octets)
    return Published(
        made.exchange or "",
        key if made.routing_key is None else made.routing_key,
        raw,
        made.body,
        made.properties,
    )


def _queue_name(address: str) -> str:
    """Return the queue in an address of RabbitMQ; any other address unchanged."""
    return address.removeprefix("/queues/")


def _read_name(octets: bytes, pos: int) -> tuple[str, int]:
    end = pos + 1 + octets[pos]
    return octets[pos + 1 : end].decode(errors="surrogateescape"), end


def keys_of(content: Published) -> tuple[str, ...]:
    """Return all routing keys: the message's own, and those of the header CC."""
    return (
        content.routing_key,
        *(key for key in items_of(content.headers.get("CC")) if isinstance(key, str)),
    )


def items_of(value: object) -> Sequence[Any]:
    """Return the items of an array; none for any other value."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def deaths_of(headers: Mapping[str, Any]) -> list[Recorded]:
    """Return the deaths in the header ``x-death``.

    A publisher may have written it: entries that are malformed, or that no death could be added to, are left out.
    """
    found: list[Recorded] = []
    for entry in items_of(headers.get(_DEATHS)):
        try:
            when = entry["time"]
            found.append(
                Recorded(
                    queue=_name(entry["queue"]),
                    reason=str(entry["reason"]),
                    count=checked(entry["count"], MOST_DEATHS),
                    time=checked(when.timestamp() if isinstance(when, datetime) else when, _LATEST),
                    exchange=_name(entry["exchange"]),
                    routing_keys=tuple(map(_name, entry["routing-keys"])),
                    original_expiration=entry.get("original-expiration"),
                )
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            continue
    return found


def _entry(death: Recorded) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "count": Int64(death.count),
        "reason": death.reason,
        "queue": _long(death.queue),
        "time": datetime.fromtimestamp(death.time, UTC),
        "exchange": _long(death.exchange),
        "routing-keys": list(map(_long, death.routing_keys)),
    }
    if death.original_expiration is not None:
        entry["original-expiration"] = death.original_expiration
    return entry


def _long(name: str) -> str | LongString:
    """Return a name for a field table, whose text must be UTF-8: otherwise its octets."""
    octets = name.encode(errors="surrogateescape")
    return name if octets.decode(errors="replace") == name else LongString(octets)


def _name(value: object) -> str:
    """Return the name that ``_long`` was given."""
    return value.decode(errors="surrogateescape") if isinstance(value, LongString) else str(value)


register(NUMBER, Form(published))
