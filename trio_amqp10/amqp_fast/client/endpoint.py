"""The common base of channels and handles: open, answer, close (RFC 006, 3.2.11).

It does not depend on particular commands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import trio

from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import Waiter

from .errors import TransportLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from .connection import Connection
    from .errors import Closed

_LOST: Final = object()
"""Stands for an answer that will not come."""

EndpointT = TypeVar("EndpointT", bound="Endpoint")


class Endpoint(Waiter, ABC):
    """A channel or a handle.

    Args:
        connection: the connection that it belongs to.

    Attributes:
        connection: as given.
        engine: the channel or the handle of the engine; replaced after the connection was restored.
        keys: keys of the answers to the opening commands, until ``wait_for_keys`` takes them.
        why: the reason, if the server closed it or the connection was lost for good; otherwise None.
        closed_here: whether the program closed it.
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
        """Wait until the server has opened the endpoint."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the endpoint, and wait for the server's answer.

        Cancelled: the close is written anyway.
        """

    def _end(self, why: Closed | None) -> None:
        """Mark the endpoint as closed, and send a close; None: closed by the program."""
        self.shut(why)
        self.engine.close()
        self.connection.wake_writer()

    def check(self) -> None:
        """Raise the reason why the endpoint is closed, if it is closed."""
        if self.closed_here:
            raise trio.ClosedResourceError(f"{self!r} is closed")
        if self.why is not None:
            raise fresh_copy(self.why)

    def shut(self, why: Closed | None) -> None:
        """Mark the endpoint as closed, and wake its tasks; None: closed by the program."""
        if self.why is None and not self.closed_here:
            self.why = why
            self.closed_here = why is None
        self.wake()

    def new_tag(self, *, bounded: bool = True) -> int:
        """Return a free tag for a command, and expect its answer.

        ``wait_for`` must be called with the tag. For ``bounded`` see ``expect``.
        """
        while True:
            self._last_tag = self._last_tag % 0xFFFF + 1
            if self._last_tag not in self._answers:
                self.expect(self._last_tag, bounded=bounded)
                return self._last_tag

    def expect(self, key: object, *, bounded: bool = True) -> None:
        """Expect an answer with this key; call ``wait_for`` or ``forget`` with it later.

        ``bounded``: the answer must come within ``Limits.answer_timeout``.
        """
        self._answers[key] = []
        if bounded:
            self.connection.engine.answers.expect((self, key), self)
        self.connection.expect(1)

    def settle(self, key: object, value: Any) -> None:
        """Record an answer; it is dropped if no call expects it."""
        if key in self._answers:
            self._answers[key].append(value)
            self.connection.engine.answers.answered((self, key))
            self.wake()

    def forget(self, key: object) -> None:
        """Stop expecting the answer with this key."""
        del self._answers[key]
        self.connection.engine.answers.answered((self, key))
        self.connection.expect(-1)

    def _write(self, command: Any, key: object) -> None:
        """Write the command that is answered with ``key``; forget the key if it fails."""
        try:
            self.engine.write(command)
        except BaseException:
            self.forget(key)
            raise
        self.connection.wake_writer()

    async def wait_for_keys(self) -> list[Any]:
        """Return the answers for all ``keys``, in their order; raises as ``wait_for``."""
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
        """Stop expecting the answers with ``keys``."""
        for key in self.keys:
            self.forget(key)
        self.keys.clear()

    def lose(self) -> None:
        """End all waits with ``TransportLostError``: the commands must be written again."""
        for answers in self._answers.values():
            answers.append(_LOST)
        self.wake()

    async def _answered(self, ask: Callable[[], object]) -> Any:
        """Call ``ask`` to write a command, and return its answer.

        ``ask`` returns the key of the answer. It is called again after each loss of the transport. Raises as ``wait_for``.

        Cancelled: the command may be done or not.
        """
        while True:
            await self.wait_for_room()
            try:
                return await self.wait_for(self.connection.pump.write_at_once(ask))
            except TransportLostError:
                continue

    async def _confirmed(self, command: Any) -> None:
        """Write a command, and wait until the server has confirmed it.

        Raises as ``wait_for``.

        Cancelled: the command may be done or not.
        """
        await self._answered(lambda: self.ask(command))

    def ask(self, command: Any) -> int:
        """Write a command with a new tag, and return the tag for ``wait_for``."""
        tag = self.new_tag()
        self._write(replace(command, confirm_tag=tag), tag)
        return tag

    async def wait_for(self, key: object) -> Any:
        """Wait for the answer with this key, and return it.

        Raises:
            TransportLostError: the transport was lost before the answer, but the connection will be restored.
            ConnectionClosedError, ChannelClosedError, HandleClosedError: the server closed the endpoint, or was lost.
            trio.ClosedResourceError: the endpoint was closed here.

        Cancelled: the answer is dropped.
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
        """Wait until there is room to write; always a checkpoint.

        Raises as ``check``.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while True:
            self.check()
            if self.connection.is_up and self.connection.engine.has_room:
                return
            await self.wait()

    async def until_restored(self) -> None:
        """Wait until the connection is restored on another transport; raises as ``check``."""
        while True:
            self.check()
            if self.connection.is_up:
                return
            await self.wait()


class Opening(Generic[EndpointT]):
    """A channel or a handle that opens when it is entered with ``async with``.

    Args:
        ready: waits until the endpoint may be opened; always a checkpoint.
        make: creates the endpoint, and writes the command that opens it.
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
