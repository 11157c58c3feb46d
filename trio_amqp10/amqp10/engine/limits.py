"""Limits on the resources that a peer may use, with units and defaults.

``None`` means no limit; 0 never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trio_amqp10.core.answer_deadlines import ANSWER_TIMEOUT
from trio_amqp10.core.number_fields import check_numbers, check_ranges, check_time_limits

_RANGES: Final[dict[str, tuple[int, ...]]] = {
    "channel_max": (0, 0xFFFF),
    "handle_max": (0, 0xFFFFFFFF),
    "incoming_window": (1, 0xFFFFFFFF),
    "max_frame_size": (0, 0xFFFFFFFF),
    "max_message_size": (1, 0xFFFFFFFFFFFFFFFF),
    "output_soft": (1,),
}
"""The least value of a limit and, if its field has one, the largest (2.7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection: times in seconds, sizes in octets.

    Attributes:
        max_frame_size: the largest frame that we accept and announce (2.7.1); at least 512. By default a
            block of 64 KiB of a body fits into one frame.
        channel_max: the highest channel number that we accept: the number of sessions, less one (2.7.1).
        handle_max: the highest link handle that we accept in a session: the number of links, less one
            (2.7.2).
        max_links: the number of links on the whole connection.
        max_message_size: octets of one message that we accept (2.7.3); None announces no limit.
        incoming_window: transfers that we accept before we announce room again (2.5.6).
        partial_octets: octets of incomplete deliveries, on the whole connection.
        stream_octets: octets of streamed deliveries that were not read yet, on one session with such a
            receiver.
        empty_transfers: the number of transfers without payload in one delivery.
        performative_nodes: the number of values in one performative; ``attach.unsettled`` is counted
            separately.
        handshake_timeout: the time from the first possible octet to the peer's ``open``.
        header_timeout: the time to the peer's first protocol header.
        layer_timeout: the time for the handshake of TLS, and for that of a WebSocket.
        answer_timeout: the time to answer our begin or attach, or a request to a transaction coordinator. If
            the peer does not answer in time, the link or the connection is closed with an error. None for any
            time.
        close_timeout: the time from our ``close`` to the end of the transport.
        min_idle_timeout: a peer that asks for a shorter idle time-out is refused (2.4.5).
        heartbeats: the number of empty frames accepted at once, then ``heartbeat_rate`` per second.
        heartbeat_rate: see ``heartbeats``.
        churn: the number of sessions and links that the peer may end unanswered at once, then ``churn_rate``
            per second.
        churn_rate: see ``churn``.
        output_soft: octets of pending output above which senders wait.
        output_hard: octets of pending output above which the transport is aborted.
        write_stall: the time that one write may take before the transport is aborted.

    Raises:
        LocalProtocolError: a value is not a number, or out of its range.
    """

    max_frame_size: int = 66_048
    channel_max: int = 63
    handle_max: int = 255
    max_links: int | None = 1_024
    max_message_size: int | None = 16 * 1024 * 1024
    incoming_window: int = 2_048
    partial_octets: int | None = 64 * 1024 * 1024
    stream_octets: int = 2 * 1024 * 1024
    empty_transfers: int | None = 1_024
    performative_nodes: int = 1_024
    handshake_timeout: float | None = 10.0
    header_timeout: float | None = 5.0
    layer_timeout: float | None = 5.0
    answer_timeout: float | None = ANSWER_TIMEOUT
    close_timeout: float = 5.0
    min_idle_timeout: float = 1.0
    heartbeats: int | None = 100
    heartbeat_rate: float = 10.0
    churn: int | None = 500
    churn_rate: float = 50.0
    output_soft: int = 256 * 1024
    output_hard: int | None = 4 * 1024 * 1024
    write_stall: float | None = 30.0

    def __post_init__(self) -> None:
        check_numbers(self)
        check_time_limits(self, "handshake_timeout", "header_timeout", "layer_timeout")
        check_ranges(self, _RANGES)


DEFAULT_LIMITS: Final = Limits()
"""The default limits, which all connections share."""
