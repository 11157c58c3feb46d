"""The classes of a connection's senders, receivers and deliveries.

Knows the classes; knows no connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .receiver import Receiver
from .sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import Delivery

__all__ = ["LinkClasses"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkClasses:
    """Classes for what a connection makes from now on: each a subclass of what it would be, made with the same arguments.

    Attributes:
        sender: of links that send, whoever opens them.
        receiver: of links that receive.
        delivery: makes one for messages that come in, on all links, of the class that there would be; None leaves that.
    """

    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver
    delivery: Callable[[type[Delivery]], type[Delivery]] | None = None
