"""The fields of the peer's open: identity, limits, extensions, locales (2.7.1).

Knows nothing of connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.pair_map import copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trio_amqp10.amqp10.spec.transport import Open

DEFAULT_LOCALE: Final = "en-US"
"""The locale that every peer supports, listed or not (2.7.1)."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The fields of the peer's open (2.7.1).

    Attributes:
        container_id: the container id of the peer.
        hostname: the host that the peer wants to reach.
        max_frame_size: octets of the largest frame that the peer accepts.
        channel_max: the highest channel number of the peer: one less than the sessions that it accepts.
        idle_timeout: seconds of silence after which the peer closes the connection, or None.
        properties: properties of the peer, by symbol. A ``PairMap`` if the peer sent keys that a dict cannot
            hold.
        offered_capabilities, desired_capabilities: extensions.
        outgoing_locales, incoming_locales: the languages in which the peer can write error descriptions, and
            in which it wants to read them.
    """

    container_id: str
    hostname: str | None
    max_frame_size: int
    channel_max: int
    idle_timeout: float | None
    properties: Mapping[Any, Any]
    offered_capabilities: tuple[str, ...]
    desired_capabilities: tuple[str, ...]
    outgoing_locales: tuple[str, ...] = ()
    incoming_locales: tuple[str, ...] = ()

    @classmethod
    def of(cls, performative: Open) -> Remote:
        """Make it of an open."""
        timeout = performative.idle_time_out
        return cls(
            container_id=performative.container_id,
            hostname=performative.hostname,
            max_frame_size=performative.max_frame_size,
            channel_max=performative.channel_max,
            idle_timeout=timeout / 1000 if timeout else None,
            properties=copied(performative.properties),
            offered_capabilities=tuple(performative.offered_capabilities),
            desired_capabilities=tuple(performative.desired_capabilities),
            outgoing_locales=tuple(performative.outgoing_locales),
            incoming_locales=tuple(performative.incoming_locales),
        )


def choose_locale(wanted: Iterable[str], written: Iterable[str]) -> str:
    """Return the first of ``wanted`` that is in ``written``, spelled as there.

    ``en-US`` if none is.
    """
    known = {tag.lower(): str(tag) for tag in (DEFAULT_LOCALE, *written)}
    return next((known[tag.lower()] for tag in wanted if tag.lower() in known), DEFAULT_LOCALE)
