"""A simulated network between two streams, deterministic on trio's clock.

Knows the two ends, and the effect of a broken network on them; ``network_line`` has the effect of a
direction on its octets.
"""

from __future__ import annotations

import random
import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp10.peer.tapped_stream import TappedStream
from trio_amqp10.net.memory_streams import MemoryStream, memory_stream_pair

from .network_line import Ending, Line, Passage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_NO_LINGER: Final = struct.pack("ii", 1, 0)


class NetworkStream(trio.abc.HalfCloseableStream):
    """An end of a simulated network: a memory stream that can break."""

    def __init__(self, stream: MemoryStream) -> None:
        self._stream = stream
        self.is_broken = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write.

        Raises:
            BrokenResourceError: the network was reset.

        Cancelled: nothing was written.
        """
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a write would not block. Cancelled: nothing has happened."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """End the direction of this end. Cancelled: nothing has happened."""
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the octets that have arrived, or wait for some.

        Raises:
            BrokenResourceError: the network was reset.

        Cancelled: nothing was read.
        """
        data = await self._stream.receive_some(max_bytes)
        if not data and self.is_broken:
            raise trio.BrokenResourceError("the network was reset")
        return data

    async def aclose(self) -> None:
        """Close both directions. Cancelled: the stream is closed."""
        await self._stream.aclose()


class _End:
    """One end of a network, seen from within the network."""

    def __init__(self, stream: trio.abc.Stream, user: NetworkStream | None = None) -> None:
        self.stream = stream
        self._user = user

    async def reset(self) -> None:
        if self._user is not None:
            self._user.is_broken = True
        elif isinstance(socket_stream := _inner(self.stream), trio.SocketStream):
            try:
                socket_stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            except (OSError, trio.ClosedResourceError):
                return  # the stream is already closed
        await trio.aclose_forcefully(self.stream)

    async def end(self) -> None:
        try:
            if isinstance(self.stream, trio.abc.HalfCloseableStream):
                await self.stream.send_eof()
                while await self.stream.receive_some():
                    pass  # closing with unread octets would be a reset
            else:
                await self.stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


def _inner(stream: trio.abc.Stream) -> trio.abc.Stream:
    return stream.stream if isinstance(stream, TappedStream) else stream


class Network:
    """Two directions between two ends.

    Attributes:
        near: the stream at this end; its writes go ``there``.
        far: the stream at the other end; its writes come ``back``.
        there: the direction from near to far: ``octets``, ``stall()``, ``resume()``.
        back: the direction from far to near.
        ending: how the network was cut, or None.
    """

    def __init__(
        self,
        near: _End,
        far: _End,
        ends: tuple[trio.abc.Stream, trio.abc.Stream],
        lines: tuple[Line, Line],
        seed: int,
    ) -> None:
        self.near: trio.abc.Stream = ends[0]
        self.far: trio.abc.Stream = ends[1]
        self.ending: Ending | None = None
        self._ends = (near, far)
        self._was_cut = trio.Event()
        self.there: Passage
        self.back: Passage
        self.there, self.back = (
            Passage(line, random.Random(f"{seed} {way}"), self.cut)
            for line, way in zip(lines, ("there", "back"), strict=True)
        )

    def stall(self) -> None:
        """Stop both directions until ``resume``."""
        self.there.stall()
        self.back.stall()

    def resume(self) -> None:
        """Resume both directions."""
        self.there.resume()
        self.back.resume()

    def cut(self, how: Ending = "reset") -> None:
        """Cut the network now; see ``Cut``. Later cuts have no effect.

        Octets in flight are lost.
        """
        if self.ending is None:
            self.ending = how
            self._was_cut.set()

    async def run(self) -> None:
        """Carry octets until both ends have ended. Cancelled: both ends are closed."""
        near, far = self._ends
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._break, nursery)
                async with trio.open_nursery() as ways:
                    ways.start_soon(self.there.run, near.stream, far.stream)
                    ways.start_soon(self.back.run, far.stream, near.stream)
                nursery.cancel_scope.cancel()
            if self.ending == "silence":
                await trio.sleep_forever()
            elif self.ending == "eof":
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(near.end)
                    nursery.start_soon(far.end)
        finally:
            with trio.CancelScope(
                shield=True
            ):  # otherwise, if the first close were cancelled, the other end would stay open
                await trio.aclose_forcefully(near.stream)
                await trio.aclose_forcefully(far.stream)

    async def _break(self, nursery: trio.Nursery) -> None:
        await self._was_cut.wait()
        if self.ending == "reset":
            for end in self._ends:
                await end.reset()
        nursery.cancel_scope.cancel()


def network_around(
    near: trio.abc.Stream, far: trio.abc.Stream, lines: tuple[Line, Line], seed: int
) -> Network:
    """Make a network between two existing streams, which forwards octets between them."""
    return Network(_End(near), _End(far), (near, far), lines, seed)


@asynccontextmanager
async def open_network(
    stream: trio.abc.Stream | None = None,
    *,
    there: Line | None = None,
    back: Line | None = None,
    seed: int = 0,
) -> AsyncGenerator[Network]:
    """Open a network: ``async with open_network(there=Line(delay=0.1)) as network``.

    The network uses trio's clock, and random numbers from ``seed``: in memory, and with a MockClock, every run is the same.

    Args:
        stream: a stream to connect to the far end; if None, ``network.far`` is another memory stream.
        there: the effect on octets from the near end to the far end.
        back: the effect on octets from the far end to the near end.
        seed: the seed for sizes and jitter.

    Cancelled: both ends are closed.
    """
    ours, user_near = memory_stream_pair()
    near = NetworkStream(user_near)
    lines = (there or Line(), back or Line())
    if stream is None:
        theirs, user_far = memory_stream_pair()
        far = NetworkStream(user_far)
        network = Network(_End(ours, near), _End(theirs, far), (near, far), lines, seed)
    else:
        network = Network(_End(ours, near), _End(stream), (near, stream), lines, seed)
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(network.run)
        try:
            yield network
        except Exception as failure:
            raised = failure
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
