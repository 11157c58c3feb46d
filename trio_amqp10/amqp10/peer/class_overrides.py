"""The classes that a connection uses for its senders, receivers and deliveries.

Knows these classes; knows no connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .receiver import Receiver
from .sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import Delivery


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkClasses:
    """The classes of the links and deliveries that a connection creates.

    Each must be a subclass of the default class, and takes the same arguments.

    Attributes:
        sender: the class of sending links, opened by either end.
        receiver: the class of receiving links.
        delivery: a function that is called with the default class of incoming deliveries and returns the
            class to use, on all links; None for the default class.
    """

    sender: type[Sender] = Sender
    receiver: type[Receiver] = Receiver
    delivery: Callable[[type[Delivery]], type[Delivery]] | None = None


DEFAULT_CLASSES: Final = LinkClasses()
"""The classes of this library, which all connections share."""
