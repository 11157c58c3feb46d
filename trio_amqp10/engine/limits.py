"""Limits on what a peer may cost: each with its unit and its default.

``None`` means no limit, and 0 never does.
"""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.awaited_answers import ANSWER_TIMEOUT

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one connection may cost. Times in seconds, sizes in octets, the rest in pieces.

    Attributes:
        max_frame_size: the largest frame that we take, and announce (2.7.1); at least 512. A block of 64 KiB of a
            body, and what stands before it, are one frame by default.
        channel_max: the highest channel number that we take: sessions less one (2.7.1).
        handle_max: the highest link handle that we take in a session: links less one (2.7.2).
        max_links: links on the whole connection.
        max_message_size: octets of one message that we take (2.7.3); None announces no limit.
        incoming_window: transfers that we take before we announce room again (2.5.6).
        partial_octets: octets of deliveries begun and not complete, on the whole connection.
        stream_octets: octets of streamed deliveries that nobody has read yet, on one session with such a receiver.
        empty_transfers: transfers without payload in one delivery.
        performative_nodes: values in one performative; ``attach.unsettled`` counts apart.
        handshake_timeout: from the first octet possible to the peer's ``open``.
        header_timeout: to the peer's first protocol header.
        layer_timeout: for the handshake of TLS, and for that of a WebSocket.
        answer_timeout: for the answer to our begin or attach, and to what we ask of a coordinator; a peer that does not answer
            in that time counts as broken, and the connection is closed. None for any time.
        close_timeout: from our ``close`` to the end of the transport, at the latest.
        min_idle_timeout: a peer that asks for a shorter idle time-out is refused (2.4.5).
        heartbeats: empty frames at once, and ``heartbeat_rate`` a second after those.
        churn: sessions and links that the peer ended unanswered, at once; then ``churn_rate`` a second.
        output_soft: pending output above which senders wait.
        output_hard: pending output above which the transport is aborted.
        write_stall: how long one write may take before the transport is aborted.
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
