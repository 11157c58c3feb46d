"""Messages: the sections of a delivery's payload, read, built and written (3.2)."""

from __future__ import annotations

from .message import Data, Message, Sequence, Value, encode_around, encode_message

__all__ = ["Data", "Message", "Sequence", "Value", "encode_around", "encode_message"]
