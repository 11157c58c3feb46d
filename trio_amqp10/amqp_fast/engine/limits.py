"""The limits that an engine proposes and enforces: octets and seconds."""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.amqp_fast.wire.frames import FRAME_MIN
from trio_amqp10.core.answer_deadlines import ANSWER_TIMEOUT
from trio_amqp10.core.number_fields import check_numbers, check_ranges, check_time_limits

_INTEGER_MAX = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection (RFC 006, 3.2.5.1).

    Attributes:
            frame_max: octets of a command or a fragment, at least 1024; a client lowers its limit to that of the server.
            channel_max: channels that a server allows; 0 for any number.
            handle_max: handles that a server allows; 0 for any number.
            heartbeat: interval in seconds at which the peer is asked to ping; 0 for no pings.
            txn_limit: messages that a server takes in one transaction; 0 for any number.
            handshake_timeout: seconds until the connection must be open; None for no limit.
            answer_timeout: seconds for the reply to a command of a client (but not to a message). If a server does not reply in
                time, the connection is closed. None for no limit.
            close_timeout: seconds for the answer to our close.
            penalty: seconds that a server waits before it ends a connection that was not opened (3.2.12).
            max_message_size: octets of the body of a message; a larger message closes its channel with 311.
            max_partial: octets of all incomplete messages, prepared messages included; exceeding it closes a channel with 506.
                ``serve(max_partial_octets=...)`` limits all connections of a listener together.
            buffer: octets of arrivals not yet taken by the application, above which ``wants_data`` is False.
            write_buffer: octets waiting to be written, above which ``Engine.has_room`` is False. Also the octets of answers that
                the peer has not read, above which its commands wait and ``wants_data`` is False.
            dictionaries: whether short names of headers are exchanged for full names (3.2.5.2).

    Raises:
        ValueError: a number out of its range.
    """

    frame_max: int = 65_535
    channel_max: int = 1024
    handle_max: int = 4096
    heartbeat: int = 60
    txn_limit: int = 0
    handshake_timeout: float | None = 30.0
    answer_timeout: float | None = ANSWER_TIMEOUT
    close_timeout: float = 5.0
    penalty: float = 3.0
    max_message_size: int = 128 * 1024 * 1024
    max_partial: int = 256 * 1024 * 1024
    buffer: int = 4 * 1024 * 1024
    write_buffer: int = 1024 * 1024
    dictionaries: bool = False

    def __post_init__(self) -> None:
        check_numbers(self)
        ranges = (
            ("frame_max", self.frame_max, FRAME_MIN, _INTEGER_MAX),
            ("channel_max", self.channel_max, 0, 0xFFFF),
            ("handle_max", self.handle_max, 0, 0x10000),
            ("heartbeat", self.heartbeat, 0, _INTEGER_MAX),
            ("txn_limit", self.txn_limit, 0, _INTEGER_MAX),
        )
        for name, value, least, most in ranges:
            if not least <= value <= most:
                raise ValueError(f"{name}={value}: expected {least} to {most}")
        check_time_limits(self, "handshake_timeout")
        check_ranges(self, {"write_buffer": (1,)})
