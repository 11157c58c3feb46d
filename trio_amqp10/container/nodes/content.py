"""Content: a message as nodes and stores hold it, in the form in which it came.

A protocol brings a form: a subclass of ``Content`` that reads its octets, registered in ``form_registry`` under a number.
A node asks the content what it has to know: the terms on which it is held, whether it is to survive. A content
never changes: what leaves a mark in it, as an ended lease does, makes another. What was meant for the first hop alone
is not in it.

Knows octets; knows no dialect.
"""

# Methods that subclasses override, whose defaults need no argument.
# ruff: noqa: ARG002

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from . import form_registry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["USUAL", "Content", "Death", "PastDeath", "Publication", "Terms"]

NORMAL: Final = 4
"""The priority of a message that names none."""

Death = Literal["rejected", "expired", "delivery-limit", "overflow", "deleted"]
"""Why a queue gives a message up."""


class Terms(NamedTuple):
    """The terms on which a message is held.

    Attributes:
        priority: 0 to 255; 4 is normal.
        ttl: milliseconds that it lives from its arrival here, or None.
        expiry: milliseconds since 1970 when its life ends, or None. A dead letter does not expire.
        group: the group of messages that it belongs to, or None.
    """

    priority: int = NORMAL
    ttl: int | None = None
    expiry: int | None = None
    group: str | None = None


USUAL: Final = Terms()


class Publication(NamedTuple):
    """Where a message was published to.

    Attributes:
        exchange: the name of the exchange; empty for the default one.
        routing_keys: its routing key, and any further ones.
    """

    exchange: str
    routing_keys: tuple[str, ...]


class PastDeath(Protocol):
    """An entry in the history of a dead message.

    Attributes:
        queue: the name of the queue that it died in.
        reason: why, in the words of the form; ``"rejected"`` if a consumer rejected it.
    """

    @property
    def queue(self) -> str: ...

    @property
    def reason(self) -> str: ...


class Content:
    """A message in one form. Subclass it for the form of a protocol; the defaults are those of octets that say nothing.

    Args:
        number: of its form.
        octets: the message, in this form.
        terms: on which it is held.
        durable: whether it is to survive the process.

    Attributes:
        number, octets, terms, durable: as given.
        size: how many octets these are.
    """

    __slots__ = ("_standard", "durable", "number", "octets", "size", "terms")

    def __init__(self, number: int, octets: bytes, terms: Terms = USUAL, *, durable: bool = False) -> None:
        self.number: int = number
        self.octets: bytes = octets
        self.size: int = len(octets)
        self.terms: Terms = terms
        self.durable: bool = durable
        self._standard: Any = None

    @property
    def to(self) -> str | None:
        """The address that it names as its destination, or None. Raises ``RemoteProtocolError`` if it cannot be read."""
        return None

    def aged(self, left: int) -> Content:
        """The same with ``left`` milliseconds to live, for content whose terms have a ttl."""
        return self

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:
        """What is left once a lease on it has ended, or may have been given before a restart; itself if nothing changes.

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
        """The dead letter that it becomes, which does not expire; in a queue of a broker its history has one more entry (``broker.death_history``).

        Args:
            source: the address of the queue that it died in; the name of a queue of a broker.
            reason: why.
            now: seconds since 1970.
            publication: where it was published to before it died, if that was in a queue of a broker; None otherwise.
            condition, description: the error that its receiver gave.
        """
        return self

    @property
    def headers(self) -> Mapping[str, Any]:
        """Its headers, which exchanges of type headers compare; empty if it has none, or they cannot be read."""
        return {}

    @property
    def publication(self) -> Publication | None:
        """Where it was published to; None if it does not say."""
        return None

    def published_to(self, exchange: str, routing_key: str) -> Content:
        """The same, which says that it was published there (``publication``); itself in a form that cannot say it.

        Args:
            exchange: the name of the exchange; empty for the default one.
            routing_key: its routing key.
        """
        return self

    @property
    def deaths(self) -> Sequence[PastDeath]:
        """Where it has died before, the last death first; empty if it does not say."""
        return ()

    def standard(self) -> Content:
        """The same message in the form 0, that of AMQP 1.0; translated once."""
        if self._standard is None:
            self._standard = form_registry.content_of(0, self.translated())
        return self._standard  # type: ignore[no-any-return]

    def translated(self) -> bytes:
        """The octets of this message in the form 0."""
        raise NotImplementedError

    def as_message(self) -> Any:
        """This as a ``Message``, for functions, filters and the outlets of AMQP 1.0; always the same one, not to be changed."""
        return self.standard().as_message()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} number={self.number} octets={len(self.octets)}>"
