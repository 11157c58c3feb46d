"""The forms of AMQP 1.0: messages in sections (3.2), and messages of other formats (2.8.11).

Header, delivery count and annotations are what a container may change (3.2); the bare message stays the octets that
came. The lower octet of a message-format is a version (2.8.11): the formats 1 to 255 are later versions of that of the standard,
and are read like it as far as they can be. A dead letter gets annotations (3.2.3) that say why:

================================  ==================================================================
x-opt-deadletter-source           the address of the queue that it died in
x-opt-deadletter-reason           ``rejected``, ``expired``, ``delivery-limit``, ``overflow`` or ``deleted`` (10.3)
x-opt-deadletter-condition        the error condition that the consumer gave, if it rejected it with one
x-opt-deadletter-description      what the consumer said to it, if it did
================================  ==================================================================

One that died in a queue of a broker gets those of RabbitMQ 4 instead of the first two (``death_annotations``).

Deliveries are made ``Arriving``, so that a node has their content. Knows messages and deliveries; knows no links.
"""

from __future__ import annotations

import logging
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.nodes.content import USUAL, Content, Publication, Terms
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message
from trio_amqp10.message.sections import LAST_VERSION
from trio_amqp10.peer.delivery import Delivery
from trio_amqp10.spec.messaging import Accepted

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

    from trio_amqp10.container.nodes.content import Death, PastDeath

__all__ = ["Arriving", "Opaque", "Sections", "arriving", "content_of_message", "received", "to_transfer"]

_log = logging.getLogger("trio_amqp10.container")

_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"

_BODY: Final = frozenset(b"\x00\x53" + bytes((code,)) for code in range(0x74, 0x78))
"""How a message begins that has neither header nor annotations nor properties."""


class Sections(Content):
    """A message in sections (3.2).

    Args:
        octets: the payload of a delivery, or of several transfers, whole.
        message: the same, if it is to be read otherwise than as ``Message`` reads it.
        number: its message-format: 0, or a later version of that format (2.8.11).
    """

    __slots__ = ()

    def __init__(self, octets: bytes, message: Message | None = None, number: int = 0) -> None:
        self.number = number
        self._standard = message
        durable = False if octets[:3] in _BODY else usual_durability(octets)
        if durable is not None:
            self.octets: bytes = octets
            self.terms: Terms = USUAL
            self.durable: bool = durable
        else:
            self.octets = for_next_hop(octets)
            if self.octets is not octets:
                self._standard = None
            self.terms = terms_of(self.octets)
            self.durable = is_durable(self.octets)
        self.size: int = len(self.octets)

    @property
    def to(self) -> str | None:
        return self.as_message().to

    def aged(self, left: int) -> Content:
        """So that it dies even on a way in circles (3.2.1)."""
        message = self._read()
        message.ttl = left
        return self._changed(message)

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:
        """The header counts the attempt (3.2.1), and annotations are merged (3.4.5)."""
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
            marks = to_annotations(self._annotations, source, reason, publication, now, ttl)
        return self._marked({**marks, CONDITION: condition, DESCRIPTION: description})

    def _marked(self, marks: Mapping[str, Any]) -> Content:
        """Without a ttl, and with these annotations; those that are None are removed."""
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
        """Its application-properties, and annotations whose names begin with ``x-``, as RabbitMQ 4 reads them."""
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
        """What ``x-exchange`` and ``x-routing-key`` say."""
        notes = self._annotations
        exchange, key = notes.get(_EXCHANGE), notes.get(_KEY)
        if not (isinstance(exchange, str) and isinstance(key, str)):
            return None
        return Publication(exchange, (key,))

    def published_to(self, exchange: str, routing_key: str) -> Content:
        """With ``x-exchange`` and ``x-routing-key``; itself if it cannot be annotated."""
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
    def _annotations(self) -> Mapping[Any, Any]:
        """Those of the message; none if they cannot be read."""
        try:
            return self.as_message().annotations
        except RemoteProtocolError:
            return {}

    def standard(self) -> Content:
        return self

    def translated(self) -> bytes:
        return self.octets

    def as_message(self) -> Message:
        message: Message | None = self._standard
        if message is None:
            message = self._standard = self._read()
        return message

    def _read(self) -> Message:
        """A message of its own of these octets."""
        return Message.from_payload(self.octets, self.number)

    def _changed(self, message: Message) -> Sections:
        """The content that a changed message is, in the same version of the format."""
        return Sections(message.to_payload(), number=self.number)


class Opaque(Content):
    """Octets that cannot be read here: of another message-format (2.8.11), or of a protocol that is not there.

    They are held and passed on as they are. A receiver of AMQP 1.0 gets those of another message-format with its number,
    and those of an unknown form as a body of data.

    Whether their sender asked for durability cannot be read, so they count as durable: a store keeps them.

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
        if self.number < 0:
            return self.standard().as_message()  # type: ignore[no-any-return]
        message: Message | None = self._standard
        if message is None:
            message = self._standard = Message.from_payload(self.octets, self.number)
        return message


class Arriving(Delivery):
    """A delivery that a node takes."""

    __slots__ = ()

    @property
    def content(self) -> Content:
        """What came, as nodes hold it."""
        if self.message_format > LAST_VERSION:
            return Opaque(self.message_format, self.payload)
        message = None if self.message_class is Message else self.message
        return Sections(self.payload, message, self.message_format)

    @property
    def refused(self) -> bool:
        """Whether the node has answered, and has not accepted it."""
        return self.state is not None and not isinstance(self.state, Accepted)


_derived: Final[dict[type[Delivery], type[Arriving]]] = {Delivery: Arriving}


def arriving(plain: type[Delivery]) -> type[Arriving]:
    """Deliveries of this class that nodes take."""
    made = _derived.get(plain)
    if made is None:
        bases = (Arriving, plain)
        made = _derived[plain] = cast(
            "type[Arriving]", type(f"Arriving{plain.__name__}", bases, {"__slots__": ()})
        )
    return made


def received(message_format: int, octets: bytes) -> Content:
    """The content of a delivery; the number of an unknown form is negative."""
    if 0 <= message_format <= LAST_VERSION:
        return Sections(octets, number=message_format)
    return Opaque(message_format, octets)


def content_of_message(message: Message) -> Content:
    """The content that a message is.

    Raises:
        LocalProtocolError: the message cannot be encoded.
    """
    return received(message.message_format, message.to_payload())


def to_transfer(content: Content | Message) -> tuple[bytes, int]:
    """The payload and the message-format with which it is sent; content of another protocol is translated, once."""
    if isinstance(content, Message):
        return content.to_payload(), content.message_format
    if content.number < 0:
        content = content.standard()
    return content.octets, content.number
