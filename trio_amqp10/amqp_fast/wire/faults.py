"""Errors of the peer: reply code and scope (RFC 006, 2.2.10; RFC 011)."""

from __future__ import annotations

from enum import Enum

from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.core.reply_codes import CONDITIONS_RFC011, ReplyCodeRfc011, reply_text


class Level(Enum):
    """The scope of an error: what is closed; the value is the scope of the exception."""

    CONNECTION = "connection"
    CHANNEL = "session"
    HANDLE = "link"


class ReplyError(RemoteProtocolError):
    """The peer broke a rule of AMQP/Fast.

    Args:
        code: the reply code to send to the peer.
        explanation: the error and the wrong value; for 502 it begins with the name of the field (RFC 011, 3.3).
        level: what is closed.
    """

    def __init__(self, code: ReplyCodeRfc011, explanation: str, level: Level = Level.CONNECTION) -> None:
        super().__init__(explanation, CONDITIONS_RFC011[code] or Condition.INTERNAL_ERROR, level.value)
        self.code = code
        self.level = level

    @property
    def reply_text(self) -> str:
        """The text of the close, at most 255 octets."""
        return reply_text(self.code, self.description)
