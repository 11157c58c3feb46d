"""Errors and warnings that 0-9-1 lacks: redirects, alerts, aborted messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp091.client.errors import ConnectionClosedError
from trio_amqp10.core.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Mapping


class RedirectedError(ConnectionClosedError):
    """The server redirects the client (10.3, connection.redirect, C 412-423).

    Attributes:
        host: the host to connect to, as the server wrote it: a name, possibly with a colon and a port.
        known_hosts: other hosts, separated by spaces.
    """

    def __init__(self, host: str, known_hosts: str = "") -> None:
        shown = "".join(char if char.isprintable() else "\ufffd" for char in host)
        super().__init__(f"the server redirects to {shown!r}: connect there, or use insist=True")
        self.host = host
        self.known_hosts = known_hosts

    @property
    def may_retry(self) -> bool:
        """Always False: the same server would redirect again."""
        return False


class MessageAbortedError(AmqpError):
    """The server aborted a message before it was complete (10.3, C 1093)."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A warning of the server, which closes nothing (10.3, channel.alert, C 561-564).

    Attributes:
        code: the reply code, such as 506 for a message that a full queue refused.
        text: the reply text.
        details: the subject of the warning. A container sends ``exchange`` and ``routing_key``, or ``consumer_tag``.
    """

    code: int
    text: str
    details: Mapping[str, Any]
