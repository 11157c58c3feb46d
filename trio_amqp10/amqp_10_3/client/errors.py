"""What the client of 10.3 reports that the client of 0-9-1 has no use for: redirects, alerts, messages that were given up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp091.client.errors import ConnectionClosedError
from trio_amqp10.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Alert", "MessageAbortedError", "RedirectedError"]


class RedirectedError(ConnectionClosedError):
    """The server asks the client to connect elsewhere (10.3, connection.redirect, C 412-423).

    Attributes:
        host: where to connect, as the server writes it: a name, with a colon and a port where it gives one.
        known_hosts: other hosts, separated by spaces.
    """

    def __init__(self, host: str, known_hosts: str = "") -> None:
        shown = "".join(char if char.isprintable() else "\ufffd" for char in host)
        super().__init__(f"the server asks to connect to {shown!r}; insist=True asks it not to")
        self.host = host
        self.known_hosts = known_hosts

    @property
    def may_retry(self) -> bool:
        """The same host would say the same again."""
        return False


class MessageAbortedError(AmqpError):
    """The server gave up a message before it was complete (10.3, C 1093)."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning of the server's, which ends nothing (10.3, channel.alert, C 561-564).

    Attributes:
        code: the reply code, such as 506 for a message that a full queue refused.
        text: the reply-text.
        details: what it is about. A container names ``exchange`` and ``routing_key``, or ``consumer_tag``.
    """

    code: int
    text: str
    details: Mapping[str, Any]
