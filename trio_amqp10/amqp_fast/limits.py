"""What an engine proposes and bears: sizes in octets, times in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.awaited_answers import ANSWER_TIMEOUT

from .frames import FRAME_MIN

__all__ = ["Limits"]

_INTEGER_MAX = 0x7FFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection (RFC 006, 3.2.5.1).

    Attributes:
        frame_max: octets of a command or a fragment, 1024 at least; a client's is lowered to the server's.
        channel_max: channels that a server bears; 0 for any number.
        handle_max: handles that a server bears; 0 for any number.
        heartbeat: seconds after which the peer is asked to ping; 0 for not at all.
        txn_limit: messages of one transaction that a server takes; 0 for any number.
        handshake_timeout: seconds until the connection is open; None for any time.
        answer_timeout: seconds that a server has for the reply to a command of ours that is no message; a server that does not
            reply in that time counts as broken, and the connection is closed. None for any time.
        close_timeout: seconds for the answer to our close.
        penalty: seconds that a server waits before it ends a connection that did not come to be (3.2.12).
        max_message_size: octets of the body of a message; more closes its channel with 311.
        max_partial: octets of all messages that are not complete, prepared ones included; more closes their channel with 506.
            What all connections of a listener may have together is ``serve(max_partial_octets=...)``.
        buffer: octets of arrivals that were not taken yet, above which ``wants_data`` is False.
        write_buffer: octets that wait to be written, above which ``Engine.has_room`` is False; and octets of answers that the peer has
            not read, above which its commands wait and ``wants_data`` is False.
        dictionaries: whether short names of headers are exchanged for full ones (3.2.5.2).

    Raises:
        ValueError: a number out of its range.
    """

    frame_max: int = 65_535
    channel_max: int = 1024
    handle_max: int = 4096
    heartbeat: int = 0
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
        ranges = (
            ("frame_max", self.frame_max, FRAME_MIN, _INTEGER_MAX),
            ("channel_max", self.channel_max, 0, 0xFFFF),
            ("handle_max", self.handle_max, 0, 0x10000),
            ("heartbeat", self.heartbeat, 0, _INTEGER_MAX),
            ("txn_limit", self.txn_limit, 0, _INTEGER_MAX),
        )
        for name, value, least, most in ranges:
            if not least <= value <= most:
                raise ValueError(f"{name} is {least} to {most}: {value}")
