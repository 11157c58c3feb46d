"""The limits of an engine: sizes in octets, times in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.amqp091.wire.frames import FRAME_MIN
from trio_amqp10.core.answer_deadlines import ANSWER_TIMEOUT
from trio_amqp10.core.number_fields import check_numbers, check_ranges, check_time_limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection.

    Attributes:
        channel_max: the highest channel number, 1 to 65535; the lower number of both ends applies.
        frame_max: the largest frame in octets, 4096 at least; the lower number of both ends applies.
        heartbeat: the interval in seconds that a server proposes, or a client requests. 0 for none.
        handshake_timeout: seconds until the connection must be open; None for no limit.
        answer_timeout: seconds that a server has to answer a request. A server that takes longer is regarded as
            broken, and the connection is closed. None for no limit. The time stops while the server announces
            that it is blocked.
        close_timeout: seconds that the peer has to answer our close.
        max_message_size: the largest body of one content in octets; a larger one closes its channel with 406.
        max_partial: octets of all incomplete contents, staged files of 10.3 included; more closes the
            connection with 506. ``serve(max_partial_octets=...)`` is the limit for all connections of a
            listener together.
        buffer: octets of arrivals that were not taken yet; above it, ``wants_data`` is False.
        write_buffer: octets that wait to be written; above it, ``Engine.has_room`` is False. Also octets of
            answers that the peer has not read; above it, its methods wait and ``wants_data`` is False.
        flow_control: obey a client's ``channel.flow`` with active false; otherwise answer it with 540.

    Raises:
        ValueError: a number is out of its range.
    """

    channel_max: int = 2047
    frame_max: int = 131_072
    heartbeat: int = 60
    handshake_timeout: float | None = 30.0
    answer_timeout: float | None = ANSWER_TIMEOUT
    close_timeout: float = 5.0
    max_message_size: int = 128 * 1024 * 1024
    max_partial: int = 256 * 1024 * 1024
    buffer: int = 4 * 1024 * 1024
    write_buffer: int = 1024 * 1024
    flow_control: bool = True

    def __post_init__(self) -> None:
        check_numbers(self)
        ranges = (
            ("channel_max", self.channel_max, 1, 0xFFFF),
            ("frame_max", self.frame_max, FRAME_MIN, 0xFFFFFFFF),
            ("heartbeat", self.heartbeat, 0, 0xFFFF),
        )
        for name, value, least, most in ranges:
            if not least <= value <= most:
                raise ValueError(f"{name}={value}: expected {least} to {most}")
        check_time_limits(self, "handshake_timeout")
        check_ranges(self, {"write_buffer": (1,)})
