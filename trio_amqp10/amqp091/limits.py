"""What an engine proposes and bears: sizes in octets, times in seconds."""

from __future__ import annotations

from dataclasses import dataclass

from trio_amqp10.awaited_answers import ANSWER_TIMEOUT

from .frames import FRAME_MIN

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection.

    Attributes:
        channel_max: the highest channel number, 1 to 65535; the lower of both ends' counts.
        frame_max: octets of a frame, 4096 at least; the lower of both ends' counts.
        heartbeat: seconds; a server's proposal, a client's wish. 0 for none.
        handshake_timeout: seconds until the connection is open; None for any time.
        answer_timeout: seconds that a server has for the answer to a method of ours; a server that does not answer in that time
            counts as broken, and the connection is closed. None for any time. No time passes while the server says that it is
            blocked.
        close_timeout: seconds for the answer to our close.
        max_message_size: octets of the body of one content; more closes its channel with 406.
        max_partial: octets of all contents that are not complete, staged files of 10.3 included; more closes the connection with 506.
            What all connections of a listener may have together is ``serve(max_partial_octets=...)``.
        buffer: octets of arrivals that nobody took yet, above which ``wants_data`` is False.
        write_buffer: octets that wait to be written, above which ``Engine.has_room`` is False; and octets of answers that the peer has
            not read, above which its methods wait and ``wants_data`` is False.
        flow_control: obey a client's ``channel.flow`` with active false; otherwise it is answered with 540.

    Raises:
        ValueError: a number out of its range.
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
        ranges = (
            ("channel_max", self.channel_max, 1, 0xFFFF),
            ("frame_max", self.frame_max, FRAME_MIN, 0xFFFFFFFF),
            ("heartbeat", self.heartbeat, 0, 0xFFFF),
        )
        for name, value, least, most in ranges:
            if not least <= value <= most:
                raise ValueError(f"{name} is {least} to {most}: {value}")
