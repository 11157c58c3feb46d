"""Content: a message as nodes and stores hold it, in the form in which it came.

Each protocol has a form: a subclass of ``Content`` that reads its octets, registered in ``form_registry`` under a number.
A node reads from the content only the terms on which the message is held, and whether it is durable. A content never
changes: an ended lease, for example, makes a new one. Sections meant for the first hop only are not part of it.

Knows octets; knows no dialect.
"""

# Methods that subclasses override, whose defaults need no argument.
# ruff: noqa: ARG002

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from . import form_registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NORMAL: Final = 4
"""The priority of a message without one."""

Death = Literal["rejected", "expired", "delivery-limit", "overflow", "deleted"]
"""Why a queue removed a message that was not accepted."""


class Terms(NamedTuple):
    """The terms on which a message is held.

    Attributes:
        priority: 0 to 255; 4 is normal.
        ttl: milliseconds from its arrival here until it expires, or None.
        expiry: when it expires, in milliseconds since 1970, or None. A dead letter does not expire.
        group: the group of messages that it belongs to, or None.
    """

    priority: int = NORMAL
    ttl: int | None = None
    expiry: int | None = None
    group: str | None = None


USUAL: Final = Terms()


class Publication(NamedTuple):
    """The exchange and routing keys that a message was published with.

    Attributes:
        exchange: the name of the exchange; empty for the default one.
        routing_keys: its routing key, and any further ones.
    """

    exchange: str
    routing_keys: tuple[str, ...]


class PastDeath(Protocol):
    """An entry in the history of a dead message.

    Attributes:
        queue: the name of the queue where it died.
        reason: why, in the words of the form; ``"rejected"`` if a consumer rejected it.
    """

    @property
    def queue(self) -> str: ...

    @property
    def reason(self) -> str: ...


class Content:
    """A message in one form. Subclass it for the form of a protocol.

    The defaults are those of octets without a known structure.

    Args:
        number: identifies its form.
        octets: the message, in this form.
        terms: the terms on which it is held.
        durable: whether it must survive the process.

    Attributes:
        number, octets, terms, durable: as given.
        size: the number of octets.
    """

    __slots__ = ("_message", "_sections", "durable", "number", "octets", "size", "terms")

    def __init__(self, number: int, octets: bytes, terms: Terms = USUAL, *, durable: bool = False) -> None:
        self.number: int = number
        self.octets: bytes = octets
        self.size: int = len(octets)
        self.terms: Terms = terms
        self.durable: bool = durable
        self._message: Any = None
        self._sections: bytes | None = None

    @property
    def to(self) -> str | None:
        """The address of its destination, or None.

        Raises:
            RemoteProtocolError: the octets cannot be read.
        """
        return None

    @property
    def body_size(self) -> int:
        """The octets of its body.

        Those of the whole message in a form that does not separate the body.
        """
        return self.size

    def aged(self, left: int) -> Content:
        """Return the message with a ttl of ``left`` milliseconds.

        Only for content whose terms have a ttl.
        """
        return self

    def unacquired(self) -> Content:
        """Return the message marked as one that no link has acquired.

        Returns itself in a form that has no such mark.
        """
        return self

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:
        """Return the message after a lease on it has ended.

        Also used for a message that may have been leased before a restart. Returns itself if nothing changes.

        Args:
            failed: whether that was a failed attempt to deliver it.
            annotations: what the receiver adds to it.
        """
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
        """Return the dead letter of this message, which does not expire.

        In a queue of a broker its history has one more entry (``broker.death_history``).

        Args:
            source: the address of the queue where it died; for a queue of a broker, its name.
            reason: why it died.
            now: seconds since 1970.
            publication: where the message was published to, if it died in a queue of a broker; None otherwise.
            condition, description: the error that its receiver gave.
        """
        return self

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its headers, for exchanges of type headers; empty if absent or unreadable."""
        return {}

    @property
    def publication(self) -> Publication | None:
        """The exchange and keys it was published with; None if it does not contain them."""
        return None

    def published_to(self, exchange: str, routing_key: str) -> Content:
        """Return the message with this ``publication``.

        Returns itself in a form that cannot contain one.

        Args:
            exchange: the name of the exchange; empty for the default one.
            routing_key: its routing key.
        """
        return self

    @property
    def deaths(self) -> Sequence[PastDeath]:
        """Its earlier deaths, the latest first; empty if the message contains none."""
        return ()

    @property
    def died_in(self) -> str | None:
        """The queue of its last death, by name or address; None if it contains none."""
        deaths = self.deaths
        return deaths[0].queue if deaths else None

    def sections(self) -> bytes:
        """Return the octets in the form 0, that of AMQP 1.0; translated once."""
        if self._sections is None:
            self._sections = self.translated()
        return self._sections

    def translated(self) -> bytes:
        """Translate this message to the form 0, without sections for the first hop only."""
        raise NotImplementedError

    def as_message(self) -> Any:
        """Return this as a ``Message``, for functions, filters and outlets of AMQP 1.0.

        Always the same object, which must not be changed.
        """
        if self._message is None:
            self._message = form_registry.content_of(0, self.sections()).as_message()
        return self._message

    def __repr__(self) -> str:
        return f"<{type(self).__name__} number={self.number} octets={len(self.octets)}>"
