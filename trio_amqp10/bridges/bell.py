"""A bell: one thread rings it, and the loop of another wakes.

On Linux it is an eventfd, elsewhere a pair of sockets, which needs twice the processor time.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_SOME: Final = 64
"""The most octets of one read; usually there is one."""


class Bell:
    """A descriptor that wakes a loop of another thread.

    Attributes:
        number: the descriptor that is readable from ``ring`` to ``silence``.
        ring: makes it readable; called in any thread.
        silence: makes it not readable; called only while it is readable.
        close: closes it; no other function may be called then.
    """

    __slots__ = ("close", "number", "ring", "silence")

    def __init__(self) -> None:
        self.number: int
        self.ring: Callable[[], object]
        self.silence: Callable[[], object]
        self.close: Callable[[], object]
        if sys.platform == "linux":
            self.number = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self.ring = partial(os.eventfd_write, self.number, 1)
            self.silence = partial(os.eventfd_read, self.number)
            self.close = partial(os.close, self.number)
        else:
            here, there = socket.socketpair()
            self.number = here.fileno()
            self.ring = partial(there.send, b"\0")
            self.silence = partial(here.recv, _SOME)
            self.close = partial(_close, here, there)


def _close(*pair: socket.socket) -> None:
    for one in pair:
        one.close()
