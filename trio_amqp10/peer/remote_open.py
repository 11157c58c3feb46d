"""The peer's ``open``: who it is, what it takes, in which language it reads (2.7.1).

Knows nothing of connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.wire.pair_map import copied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trio_amqp10.spec.transport import Open

__all__ = ["DEFAULT_LOCALE", "Remote", "choose_locale"]

DEFAULT_LOCALE: Final = "en-US"
"""The language that every peer can write, whether it says so or not."""


@dataclass(frozen=True, slots=True)
class Remote:
    """What the peer said of itself when it opened the connection (2.7.1).

    Attributes:
        container_id: who it is.
        hostname: the host that it means to reach.
        max_frame_size: octets of the largest frame that it takes.
        channel_max: sessions that it takes, less one.
        idle_timeout: seconds of silence after which it gives us up, or None.
        properties: about it; symbols to values. A ``PairMap`` where the peer sent keys that a dict cannot hold.
        offered_capabilities, desired_capabilities: extensions.
        outgoing_locales, incoming_locales: languages of what it tells of errors, and of what it wants to be told.
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
        """Read an open."""
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
    """The first that the reader wants and the writer can, spelled as the writer does; ``en-US`` if there is none."""
    known = {tag.lower(): str(tag) for tag in (DEFAULT_LOCALE, *written)}
    return next((known[tag.lower()] for tag in wanted if tag.lower() in known), DEFAULT_LOCALE)
