"""The forms of AMQP 1.0: messages in sections (3.2) and other formats (2.8.11).

A container may change header, delivery count and annotations (3.2); the bare message keeps its
octets. The lower octet of a message-format is a version (2.8.11): the formats 1 to 255 are later versions of that of
the standard, and are read like it as far as possible. A dead letter gets annotations (3.2.3) with the reason:

================================  ==================================================================
x-opt-deadletter-source           the address of the queue that it died in
x-opt-deadletter-reason           ``rejected``, ``expired``, ``delivery-limit``, ``overflow`` or ``deleted`` (by a client of AMQP 10.3)
x-opt-deadletter-condition        the condition of the error with which the consumer rejected it, if any
x-opt-deadletter-description      the description of that error, if any
================================  ==================================================================

A message that died in a queue of a broker gets those of RabbitMQ 4 instead of the first two (``death_annotations``).

Deliveries are made ``Arriving``, so that a node gets their content. Knows messages and deliveries; knows no links.
"""

from __future__ import annotations

import logging
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.sections import LAST_VERSION
from trio_amqp10.amqp10.peer.delivery import Delivery
from trio_amqp10.amqp10.spec.messaging import Accepted
from trio_amqp10.broker.nodes.content import USUAL, Content, Publication, Terms
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .annotations import merged
from .death_annotations import deaths_of, to_annotations
from .message_terms import (
    CONDITION,
    DESCRIPTION,
    REASON,
    SOURCE,
    for_next_hop,
    is_durable,
    terms_of,
    usual_durability,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.broker.nodes.content import Death, PastDeath
    from trio_amqp10.core.tolerances import Tolerances

_log = logging.getLogger("trio_amqp10.container")

_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"

_BODY: Final = frozenset(b"\x00\x53" + bytes((code,)) for code in range(0x74, 0x78))
"""The first octets of a message without header, annotations and properties."""


class Sections(Content):
    """A message in sections (3.2).

    Args:
        octets: the payload of a delivery, or of several transfers, whole.
        message: the same message, if it must be read otherwise than ``Message`` reads it.
        number: its message-format: 0, or a later version of that format (2.8.11).
        tolerances: counts the rules that it breaks, if it is read now; None for no count.
    """

    __slots__ = ()

    def __init__(
        self,
        octets: bytes,
        message: Message | None = None,
        number: int = 0,
        tolerances: Tolerances | None = None,
    ) -> None:
        self.number = number
        self._message = message
        durable = False if octets[:3] in _BODY else usual_durability(octets)
        if durable is not None:
            self.octets: bytes = octets
            self.terms: Terms = USUAL
            self.durable: bool = durable
        else:
            self.octets = for_next_hop(octets)
            if self.octets is not octets:
                self._message = None
            self.terms = terms_of(self.octets, tolerances)
            self.durable = is_durable(self.octets)
        self.size: int = len(self.octets)

    @property
    def to(self) -> str | None:
        return self.as_message().to

    def aged(self, left: int) -> Content:
        """Return the message with this ttl, so that it expires even in a cycle (3.2.1).

        Return itself if it cannot be read, because the store has damaged it.
        """
        try:
            message = self._read()
            message.ttl = left
            return self._changed(message)
        except RemoteProtocolError as fault:
            _log.debug("a message goes on unchanged: %s", fault)
            return self

    def unacquired(self) -> Content:
        """Return the message with ``first-acquirer`` (3.2.1); itself if it cannot be read."""
        try:
            message = self._read()
            if message.first_acquirer:
                return self
            message.first_acquirer = True
            return self._changed(message)
        except (RemoteProtocolError, LocalProtocolError) as fault:
            _log.debug("a message goes on unchanged: %s", fault)
            return self

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:
        """Return the message with one more attempt (3.2.1) and annotations (3.4.5)."""
        message = self._read()
        try:
            first = message.first_acquirer
            if not (first or failed or annotations):
                return self
            if first:
                message.first_acquirer = False
            if failed:
                message.delivery_count = min(message.delivery_count + 1, 0xFFFFFFFF)
            if annotations:
                message.annotations = merged(message.annotations, annotations)
            return self._changed(message)
        except (RemoteProtocolError, LocalProtocolError) as fault:
            _log.debug("a message goes on unchanged: %s", fault)
            return self

    def dead(
        self,
        source: str,
        reason: Death,
        now: float,
        publication: Publication | None = None,
        condition: str | None = None,
        description: str | None = None,
    ) -> Content:
        if publication is None:
            marks: dict[str, Any] = {SOURCE: source, REASON: reason}
        else:
            try:
                ttl = self.as_message().ttl
            except RemoteProtocolError:
                ttl = None
            # SOURCE and REASON are of an earlier death, in a queue without a broker.
            marks = {
                **to_annotations(self._annotations, source, reason, publication, now, ttl),
                SOURCE: None,
                REASON: None,
            }
        return self._marked({**marks, CONDITION: condition, DESCRIPTION: description})

    def _marked(self, marks: Mapping[str, Any]) -> Content:
        """Return the message without a ttl and with these annotations.

        An annotation that is None is removed.
        """
        letter = self._read()
        try:
            letter.ttl = None
            before = letter.annotations
            for key in marks:
                before.pop(key, None)
            letter.annotations = merged(
                before, {key: mark for key, mark in marks.items() if mark is not None}
            )
            return self._changed(letter)
        except (RemoteProtocolError, LocalProtocolError) as fault:
            _log.debug("a dead letter goes without annotations: %s", fault)
            return self

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its application-properties, and the annotations that begin with ``x-``.

        RabbitMQ 4 reads both as headers.
        """
        message = self.as_message()
        try:
            notes = {
                str(name): value for name, value in message.annotations.items() if str(name).startswith("x-")
            }
            return {**message.application_properties, **notes}
        except RemoteProtocolError:
            return {}

    @property
    def publication(self) -> Publication | None:
        """The exchange and key in ``x-exchange`` and ``x-routing-key``; None without them."""
        notes = self._annotations
        exchange, key = notes.get(_EXCHANGE), notes.get(_KEY)
        if not (isinstance(exchange, str) and isinstance(key, str)):
            return None
        return Publication(exchange, (key,))

    def published_to(self, exchange: str, routing_key: str) -> Content:
        """Return the message with ``x-exchange`` and ``x-routing-key``.

        Return it unchanged if it cannot be annotated.
        """
        marked = copy(self.as_message())
        try:
            marked.annotations = {**marked.annotations, _EXCHANGE: exchange, _KEY: routing_key}
            return self._changed(marked)
        except (RemoteProtocolError, LocalProtocolError):
            return self

    @property
    def deaths(self) -> Sequence[PastDeath]:
        return deaths_of(self._annotations)

    @property
    def died_in(self) -> str | None:
        source = self._annotations.get(SOURCE)
        return source if isinstance(source, str) else super().died_in

    @property
    def _annotations(self) -> Mapping[Any, Any]:
        """The annotations of the message; none if they cannot be read."""
        try:
            return self.as_message().annotations
        except RemoteProtocolError:
            return {}

    def sections(self) -> bytes:
        return self.octets

    def as_message(self) -> Message:
        message: Message | None = self._message
        if message is None:
            message = self._message = self._read()
        return message

    def _read(self) -> Message:
        """Return a new message of these octets, which may be changed."""
        return Message.from_payload(self.octets, self.number)

    def _changed(self, message: Message) -> Sections:
        """Return the content of a changed message, in the same version of the format."""
        return Sections(message.to_payload(), number=self.number)


class Opaque(Content):
    """A message that cannot be read here.

    It has another message-format (2.8.11), or the form of a protocol that is not loaded. It is held and passed on
    unchanged. A receiver of AMQP 1.0 gets another message-format with its number, and an unknown form as a body of data.

    It counts as durable, because its sender may have asked for that: a store keeps it.

    Args:
        number: the message-format, or the number of the unknown form.
        octets: the message.
    """

    __slots__ = ()

    def __init__(self, number: int, octets: bytes) -> None:
        super().__init__(number, octets, durable=True)

    @property
    def to(self) -> str | None:
        return self.as_message().to if self.number > 0 else None

    def translated(self) -> bytes:
        return Message(self.octets).to_payload()

    def as_message(self) -> Message:
        message: Message | None = self._message
        if message is None:
            payload = self.sections() if self.number < 0 else self.octets
            message = self._message = Message.from_payload(payload, max(self.number, 0))
        return message


class Arriving(Delivery):
    """A delivery for a node."""

    __slots__ = ()

    @property
    def content(self) -> Content:
        """The message, as nodes hold it."""
        if self.message_format > LAST_VERSION:
            return Opaque(self.message_format, self.payload)
        message = None if self.message_class is Message else self.message
        return Sections(self.payload, message, self.message_format, self.link.context.tolerances)

    @property
    def refused(self) -> bool:
        """Whether the node has given an outcome other than accepted."""
        return self.state is not None and not isinstance(self.state, Accepted)


_derived: Final[dict[type[Delivery], type[Arriving]]] = {Delivery: Arriving}


def arriving(plain: type[Delivery]) -> type[Arriving]:
    """Return the class of deliveries for nodes that extends this class."""
    made = _derived.get(plain)
    if made is None:
        bases = (Arriving, plain)
        made = _derived[plain] = cast(
            "type[Arriving]", type(f"Arriving{plain.__name__}", bases, {"__slots__": ()})
        )
    return made


def received(message_format: int, octets: bytes) -> Content:
    """Return the content of a delivery; an unknown form has a negative number."""
    if 0 <= message_format <= LAST_VERSION:
        return Sections(octets, number=message_format)
    return Opaque(message_format, octets)


def content_of_message(message: Message) -> Content:
    """Return the content of a message.

    Raises:
        LocalProtocolError: the message cannot be encoded.
    """
    return received(message.message_format, message.to_payload())


def to_transfer(content: Content | Message) -> tuple[bytes, int]:
    """Return the payload and the message-format for sending a message.

    Content of another protocol is translated, once.
    """
    if isinstance(content, Message):
        return content.to_payload(), content.message_format
    if content.number < 0:
        return content.sections(), 0
    return content.octets, content.number
