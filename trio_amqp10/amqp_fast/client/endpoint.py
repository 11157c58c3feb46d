"""What channels and handles of the client have in common: waiting for replies, and being closed (RFC 006, 3.2.11).

Knows no command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.net.waiters import Waiter

from .errors import anew

if TYPE_CHECKING:
    from .connection import Connection
    from .errors import Closed

__all__ = ["Endpoint"]


class Endpoint(Waiter):
    """A channel or a handle.

    Args:
        connection: whose it is.

    Attributes:
        connection: as given.
        why: why it is closed, if the server closed it or the connection is gone; otherwise None.
        closed_here: whether it was closed by the program.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.why: Closed | None = None
        self.closed_here = False
        self._answers: dict[object, list[Any]] = {}
        self._last_tag = 0

    def check(self) -> None:
        """Raise why it is closed; nothing if it is not."""
        if self.closed_here:
            raise trio.ClosedResourceError(f"{self!r} is closed")
        if self.why is not None:
            raise anew(self.why)

    def shut(self, why: Closed | None) -> None:
        """It is closed; None: by the program."""
        if self.why is None and not self.closed_here:
            self.why = why
            self.closed_here = why is None
        self.wake()

    def new_tag(self) -> int:
        """A tag that no command waits with; ``wait_for`` is to be called with it."""
        while True:
            self._last_tag = self._last_tag % 0xFFFF + 1
            if self._last_tag not in self._answers:
                self.expect(self._last_tag)
                return self._last_tag

    def expect(self, key: object) -> None:
        """This will come; ``wait_for`` is to be called with it."""
        self._answers[key] = []
        self.connection.expect(1)

    def settle(self, key: object, value: Any) -> None:
        """This has come; it is dropped if it is not waited for."""
        if key in self._answers:
            self._answers[key].append(value)
            self.wake()

    def forget(self, key: object) -> None:
        """This is not waited for any more."""
        del self._answers[key]
        self.connection.expect(-1)

    async def wait_for(self, key: object) -> Any:
        """What comes for this key.

        Raises:
            ConnectionClosedError, ChannelClosedError, HandleClosedError: nothing comes.
            trio.ClosedResourceError: it was closed here.

        Cancelled: what comes is dropped.
        """
        try:
            await trio.lowlevel.checkpoint()
            while not self._answers[key]:
                self.check()
                await self.wait()
            return self._answers[key][0]
        finally:
            self.forget(key)

    async def wait_for_room(self) -> None:
        """Wait until there is room to write; a checkpoint in any case. Raises as ``check``.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while True:
            self.check()
            if self.connection.engine.has_room:
                return
            await self.wait()
