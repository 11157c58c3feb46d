"""A rule that the peer broke: the reply code with which it is answered, and what is closed (RFC 006, 2.2.10; RFC 011).

Knows the codes, and no command.
"""

from __future__ import annotations

from enum import Enum

from trio_amqp10.errors import Condition, RemoteProtocolError
from trio_amqp10.reply_codes import CONDITIONS_RFC011, ReplyCodeRfc011, reply_text

__all__ = ["Level", "ReplyError"]


class Level(Enum):
    """What an error closes; the value is the scope of the exception."""

    CONNECTION = "connection"
    CHANNEL = "session"
    HANDLE = "link"


class ReplyError(RemoteProtocolError):
    """The peer broke a rule of AMQP/Fast.

    Args:
        code: the reply code that the peer is sent.
        explanation: what was wrong, with the value; for 502 it begins with the name of the field (RFC 011, 3.3).
        level: what is closed.
    """

    def __init__(self, code: ReplyCodeRfc011, explanation: str, level: Level = Level.CONNECTION) -> None:
        super().__init__(explanation, CONDITIONS_RFC011[code] or Condition.INTERNAL_ERROR, level.value)
        self.code = code
        self.level = level

    @property
    def reply_text(self) -> str:
        """The text of the close, 255 octets at most."""
        return reply_text(self.code, self.description)
