"""What channels and handles of the client have in common: opened, answered and closed (RFC 006, 3.2.11).

Knows no command.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import trio

from trio_amqp10.net.waiters import Waiter

from .errors import TransportLostError, anew

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from .connection import Connection
    from .errors import Closed

__all__ = ["Endpoint", "Opening"]

_LOST: Final = object()
"""In place of an answer that will not come."""

EndpointT = TypeVar("EndpointT", bound="Endpoint")


class Endpoint(Waiter, ABC):
    """A channel or a handle.

    Args:
        connection: whose it is.

    Attributes:
        connection: as given.
        engine: the channel or the handle of the engine; another one after the connection came back.
        keys: what will answer the commands that opened it, until somebody waits for them.
        why: why it is closed, if the server closed it or the connection is gone; otherwise None.
        closed_here: whether it was closed by the program.
    """

    engine: Any

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection
        self.why: Closed | None = None
        self.closed_here: bool = False
        self.keys: list[object] = []
        self._answers: dict[object, list[Any]] = {}
        self._last_tag = 0

    @abstractmethod
    async def opened(self) -> None:
        """Wait until the server has opened it."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close it, and wait for the server's answer.

        Cancelled: the close is written all the same.
        """

    def _end(self, why: Closed | None) -> None:
        """It is closed, and the server is sent a close; None: by the program."""
        self.shut(why)
        self.engine.close()
        self.connection.wake_writer()

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

    def new_tag(self, *, bounded: bool = True) -> int:
        """A tag that no command waits with; ``wait_for`` is to be called with it, and it is ``bounded`` as in ``expect``."""
        while True:
            self._last_tag = self._last_tag % 0xFFFF + 1
            if self._last_tag not in self._answers:
                self.expect(self._last_tag, bounded=bounded)
                return self._last_tag

    def expect(self, key: object, *, bounded: bool = True) -> None:
        """This will come, in ``Limits.answer_timeout`` if that is ``bounded``; ``wait_for`` is to be called with it."""
        self._answers[key] = []
        if bounded:
            self.connection.engine.answers.expect((self, key), self)
        self.connection.expect(1)

    def settle(self, key: object, value: Any) -> None:
        """This has come; it is dropped if it is not waited for."""
        if key in self._answers:
            self._answers[key].append(value)
            self.connection.engine.answers.answered((self, key))
            self.wake()

    def forget(self, key: object) -> None:
        """This is not waited for any more."""
        del self._answers[key]
        self.connection.engine.answers.answered((self, key))
        self.connection.expect(-1)

    def _write(self, command: Any, key: object) -> None:
        """Write a command that is answered with this key, which is forgotten if the command cannot be written."""
        try:
            self.engine.write(command)
        except BaseException:
            self.forget(key)
            raise
        self.connection.wake_writer()

    async def wait_for_keys(self) -> list[Any]:
        """What comes for each of ``keys``, in their order; raises as ``wait_for``."""
        keys, self.keys = self.keys, []
        found: list[Any] = []
        try:
            while keys:
                found.append(await self.wait_for(keys.pop(0)))
        finally:
            for key in keys:
                self.forget(key)
        return found

    def forget_keys(self) -> None:
        """Nobody waits for ``keys`` any more."""
        for key in self.keys:
            self.forget(key)
        self.keys.clear()

    def lose(self) -> None:
        """The transport is lost, and the connection will come back: what was asked is to be asked again."""
        for answers in self._answers.values():
            answers.append(_LOST)
        self.wake()

    async def _answered(self, ask: Callable[[], object]) -> Any:
        """What answers a command that ``ask`` writes and gives the key of; it is written again if the transport is lost before.

        Raises as ``wait_for``. Cancelled: it may be done or not.
        """
        while True:
            await self.wait_for_room()
            try:
                return await self.wait_for(ask())
            except TransportLostError:
                continue

    async def _confirmed(self, command: Any) -> None:
        """Write a command, and wait until the server has confirmed it; raises as ``wait_for``.

        Cancelled: it may be done or not.
        """
        await self._answered(lambda: self.ask(command))

    def ask(self, command: Any) -> int:
        """Write a command that the server is to confirm; ``wait_for`` is to be called with the tag that this returns."""
        tag = self.new_tag()
        self._write(replace(command, confirm_tag=tag), tag)
        return tag

    async def wait_for(self, key: object) -> Any:
        """What comes for this key.

        Raises:
            TransportLostError: nothing comes, but the connection will come back.
            ConnectionClosedError, ChannelClosedError, HandleClosedError: nothing comes.
            trio.ClosedResourceError: it was closed here.

        Cancelled: what comes is dropped.
        """
        try:
            await trio.lowlevel.checkpoint()
            while not self._answers[key]:
                self.check()
                await self.wait()
            answer = self._answers[key][0]
            if answer is _LOST:
                raise TransportLostError("the transport was lost before the answer")
            return answer
        finally:
            self.forget(key)

    async def wait_for_room(self) -> None:
        """Wait until there is room to write; a checkpoint in any case. Raises as ``check``.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while True:
            self.check()
            if self.connection.is_up and self.connection.engine.has_room:
                return
            await self.wait()

    async def until_restored(self) -> None:
        """Wait until what was being opened is open, on another transport. Raises as ``check``."""
        while True:
            self.check()
            if self.connection.is_up:
                return
            await self.wait()


class Opening(Generic[EndpointT]):
    """A channel or a handle that is yet to be opened: enter it with ``async with``.

    Args:
        ready: waits until it may be opened; a checkpoint in any case.
        make: makes it, and writes the command that opens it.
    """

    def __init__(self, ready: Callable[[], Awaitable[None]], make: Callable[[], EndpointT]) -> None:
        self._ready = ready
        self._make = make

    async def __aenter__(self) -> EndpointT:
        await self._ready()
        self._endpoint = endpoint = self._make()
        try:
            await endpoint.opened()
        except BaseException:
            with trio.CancelScope(shield=True):
                await endpoint.aclose()
            raise
        return endpoint

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._endpoint.aclose()
