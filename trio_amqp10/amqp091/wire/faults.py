"""The exception for an error of the peer, with its reply code (0-9-1, 4.8)."""

from __future__ import annotations

from trio_amqp10.core.errors import Condition, RemoteProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091, closes_connection, condition_of, reply_text


class ReplyError(RemoteProtocolError):
    """The peer violated 0-9-1.

    ``scope`` is ``connection`` for a hard error and ``session`` for a soft one, which closes a channel (2.3.6).
    The code decides, except where the specification makes this error a hard one.

    Args:
        code: the reply code to send.
        explanation: the error, with the wrong value; the reply-text begins with the code's name.
        class_id: the class of the method that failed; 0 if there was none.
        method_id: the method that failed; 0 if there was none.
        hard: whether it ends the connection, if the specification differs from the code; None to let the code
            decide.
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
        """The reply-text of the close method, 255 octets at most."""
        return reply_text(self.code, self.description)

    def about(self, class_id: int, method_id: int) -> ReplyError:
        """Return this error, after noting the method that caused it."""
        self.class_id, self.method_id = class_id, method_id
        return self
