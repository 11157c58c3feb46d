"""What the peer did wrong, as the reply code with which it is answered (0-9-1, 4.8).

Knows the codes, and no frame.
"""

from __future__ import annotations

from trio_amqp10.errors import Condition, RemoteProtocolError
from trio_amqp10.reply_codes import ReplyCode091, closes_connection, condition_of, reply_text

__all__ = ["ReplyError"]


class ReplyError(RemoteProtocolError):
    """The peer broke a rule of 0-9-1.

    ``scope`` is ``connection`` for a hard error and ``session`` for a soft one, which closes a channel (2.3.6). Which of both
    it is, is known by its code, unless the specification makes this error a hard one.

    Args:
        code: the reply code that the peer is sent.
        explanation: what was wrong, with the value; the reply-text has the code's name before it.
        class_id: the class of the method that failed; 0 if there was none.
        method_id: the method that failed; 0 if there was none.
        hard: whether it ends the connection, where the specification says otherwise than the code; None as the code says.
    """

    def __init__(
        self,
        code: ReplyCode091,
        explanation: str,
        class_id: int = 0,
        method_id: int = 0,
        *,
        hard: bool | None = None,
    ) -> None:
        condition = condition_of(code) or Condition.INTERNAL_ERROR
        ends = closes_connection(code) if hard is None else hard
        super().__init__(explanation, condition, "connection" if ends else "session")
        self.code = code
        self.class_id: int = class_id
        self.method_id: int = method_id

    @property
    def reply_text(self) -> str:
        """What goes into the close method, 255 octets at most."""
        return reply_text(self.code, self.description)

    def about(self, class_id: int, method_id: int) -> ReplyError:
        """The same error, now with the method in which it was found."""
        self.class_id, self.method_id = class_id, method_id
        return self
