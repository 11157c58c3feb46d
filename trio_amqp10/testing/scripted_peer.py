"""A peer that follows a script frame by frame, and reports differences.

One class for both roles: it may dial or be dialled, and speaks over any trio stream. Frames are
written and read with the codec of this library, but by no engine, so that a script may break every
rule of the standard. Nothing is answered by itself; the usual answers are methods (``accept_open`` ...).

Empty frames are passed over unless one is expected, for they may come at any time (2.4.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, overload

import trio

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.frames import AMQP_FRAME, EMPTY_FRAME, SASL_FRAME, encode_frame
from trio_amqp10.message import encode_message
from trio_amqp10.net.transports import connect
from trio_amqp10.net.urls import parse_url
from trio_amqp10.protocol_headers import AMQP_HEADER, SASL_HEADER, TLS_HEADER
from trio_amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.trace.frame_splitter import Piece, piece_at, read_pieces
from trio_amqp10.trace.frame_text import describe, hexdump
from trio_amqp10.wire.encode import encode

from .expectations import Expectation, octet_differences
from .scripted_defaults import ScriptedDefaults

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ScriptedPeer"]

P = TypeVar("P")

_READ_SIZE: Final = 65_536
_STORY: Final = 12
"""How many lines of the conversation a failure shows."""


class ScriptedPeer(ScriptedDefaults):
    """One end of a stream, driven by a test; ``async with`` closes it.

    Args:
        stream: where the peer under test is at the other end.
        timeout: seconds of trio's clock until waiting for something fails.

    Attributes:
        last: the piece that came last: its ``channel``, ``performative``, ``payload`` and ``octets``.
        transcript: the conversation so far, one line for each piece; ``->`` is what we wrote.
    """

    def __init__(self, stream: trio.abc.Stream, *, timeout: float = 5.0) -> None:
        super().__init__()
        self.stream = stream
        self.timeout = timeout
        self.last: Piece | None = None
        self.transcript: list[str] = []
        self._buffer = b""
        self._ended: str | None = None

    @classmethod
    async def dial(cls, url: str, *, timeout: float = 5.0) -> Self:  # noqa: ASYNC109 - of every later wait
        """A peer that has dialled ``url``: ``async with await ScriptedPeer.dial(url) as peer``.

        Raises:
            OSError: nobody answers there.
            LocalProtocolError: this is no URL.

        Cancelled: nothing stays open.
        """
        return cls(await connect(parse_url(url)), timeout=timeout)

    # -- write ------------------------------------------------------------------------------

    async def send(self, *what: Any, channel: int = 0, payload: Any = b"") -> None:
        """Write performatives, or octets as they are, all as one chunk.

        Args:
            what: each a performative, which goes out as a frame of its own, or raw octets.
            channel: of these frames; SASL frames have none.
            payload: what follows the last performative: octets as they are, or a message to be encoded.

        Raises:
            AssertionError: the peer is gone.
            LocalProtocolError: a value cannot be encoded.

        Cancelled: some of it may have been written.
        """
        trailing = payload if isinstance(payload, bytes) else encode_message(payload)
        parts = [self._encoded(each, channel) for each in what[:-1]]
        parts += [self._encoded(each, channel, trailing) for each in what[-1:]]
        octets = b"".join(parts)
        self.transcript += [f"-> {describe(piece)}" for piece in read_pieces(octets)]
        try:
            await self.stream.send_all(octets)
        except trio.BrokenResourceError as lost:
            raise self._failure([f"the peer is gone: {lost!r}"]) from lost

    async def send_empty(self) -> None:
        """Write an empty frame, as a peer does that has nothing else to say (2.4.5).

        Cancelled: some of it may have been written.
        """
        await self.send(EMPTY_FRAME)

    def _encoded(self, what: Any, channel: int, payload: bytes = b"") -> bytes:
        if isinstance(what, (bytes, bytearray)):
            return bytes(what) + payload
        self.remember_sent(what, channel)
        sasl = type(what) in SASL_PERFORMATIVES
        kind = SASL_FRAME if sasl else AMQP_FRAME
        return encode_frame(0 if sasl else channel, encode(what) + payload, kind)

    # -- read -------------------------------------------------------------------------------

    @overload
    async def expect(
        self, what: type[P], /, *, channel: int | None = None, payload: bytes | None = None, **fields: Any
    ) -> P: ...

    @overload
    async def expect(self, what: bytes, /) -> bytes: ...

    @overload
    async def expect(self, what: P, /, *, channel: int | None = None, payload: bytes | None = None) -> P: ...

    async def expect(
        self, what: Any, /, *, channel: int | None = None, payload: bytes | None = None, **fields: Any
    ) -> Any:
        """The next frame; or the next octets, whatever they are.

        Args:
            what: a class of performatives, with the fields that matter as keywords; a performative,
                every field of which matters; or octets.
            channel: where the frame should come; None for anywhere.
            payload: what should follow the performative; None for anything.
            fields: what fields should be. None is for absent, a mapping for some fields of a composite
                (``source={"address": "q"}``), a function says whether a value will do.

        Returns:
            The performative, or the octets. ``last`` has the whole frame.

        Raises:
            AssertionError: something else came, or nothing in time; the message shows every difference.

        Cancelled: nothing was taken.
        """
        if isinstance(what, (bytes, bytearray)):
            return await self._expect_octets(bytes(what))
        if isinstance(what, type):
            want = Expectation(cast("type[Any]", what), fields, channel, payload)
        else:
            want = Expectation.of(what, channel, payload)
        piece = await self._next(want.cls.__name__)
        differences = want.differences(piece)
        if differences:
            raise self._failure(differences)
        return self._took(piece).performative

    async def expect_header(self, layer: str = "amqp") -> None:
        """The next octets are the protocol header of this layer: ``amqp``, ``sasl`` or ``tls`` (2.2).

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: nothing was taken.
        """
        await self.expect({"amqp": AMQP_HEADER, "sasl": SASL_HEADER, "tls": TLS_HEADER}[layer])

    async def expect_empty(self) -> None:
        """The next frame is an empty one (2.4.5). Cancelled: nothing was taken."""
        piece = await self._next("an empty frame", skip_empty=False)
        if not piece.is_empty:
            raise self._failure([f"expected an empty frame, got {describe(piece)}"])
        self._took(piece)

    async def expect_nothing(self, seconds: float) -> None:
        """Nothing but empty frames comes for so long on trio's clock, and the stream does not end.

        Cancelled: nothing was taken.
        """
        with trio.move_on_after(seconds):
            while self._ended is None and (not self._buffer or self._skip_empty()):
                if not self._buffer:
                    await self._read()
        if self._buffer or self._ended is not None:
            raise self._failure(["expected nothing", *self._unread()])

    async def expect_eof(self) -> None:
        """The peer writes nothing more but empty frames, and ends its side of the stream, or is gone.

        Raises:
            AssertionError: it wrote something, or did not end in time.

        Cancelled: nothing was taken.
        """
        with trio.move_on_after(self.timeout) as patience:
            while self._ended is None and (not self._buffer or self._skip_empty()):
                if not self._buffer:
                    await self._read()
        if patience.cancelled_caught or self._buffer:
            raise self._failure(["expected the end of the stream", *self._unread()])
        self.transcript.append("<- the end of the stream")

    async def skip_to(self, what: type[P], /, **fields: Any) -> P:
        """Pass over frames until one is of this class, and expect it to have these fields.

        Raises:
            AssertionError: it has others, or none comes in time.

        Cancelled: what was passed over is gone.
        """
        while not isinstance((piece := await self._next(what.__name__)).performative, what):
            self._took(piece)
        return await self.expect(what, **fields)

    async def next(self) -> Piece:
        """Whatever comes next, but for empty frames.

        Raises:
            AssertionError: nothing comes in time.

        Cancelled: nothing was taken.
        """
        return self._took(await self._next("anything"))

    async def peek(self, wanted: str = "anything") -> Piece:
        """Whatever comes next, but for empty frames; it stays there for ``expect``.

        Args:
            wanted: what a failure says was expected.

        Raises:
            AssertionError: nothing comes in time.

        Cancelled: nothing was taken.
        """
        return await self._next(wanted)

    async def aclose(self) -> None:
        """Close the stream, without a word. Cancelled: it is closed."""
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.aclose()

    # -- within -----------------------------------------------------------------------------

    async def _expect_octets(self, want: bytes) -> bytes:
        with trio.move_on_after(self.timeout) as patience:
            while (
                self._ended is None
                and len(self._buffer) < len(want)
                and self._buffer == want[: len(self._buffer)]
            ):
                await self._read()
        got = self._buffer[: len(want)]
        if got != want:
            late = [f"only {len(got)} octets came in {self.timeout:g} s"] * patience.cancelled_caught
            raise self._failure([f"expected {len(want)} octets:", *octet_differences(want, got), *late])
        self._buffer = self._buffer[len(want) :]
        self.transcript += [f"<- {describe(piece)}" for piece in read_pieces(got)]
        return got

    async def _next(self, wanted: str, *, skip_empty: bool = True) -> Piece:
        """The next piece, which stays in the buffer until it is taken."""
        with trio.move_on_after(self.timeout) as patience:
            while True:
                if skip_empty:
                    self._skip_empty()
                piece = self._peek()
                if piece is not None:
                    return piece
                if self._ended is not None:
                    break
                await self._read()
        why = f"nothing came for {self.timeout:g} s" if patience.cancelled_caught else self._ended
        raise self._failure([f"expected {wanted}, but {why}", *self._unread()])

    def _peek(self) -> Piece | None:
        try:
            return piece_at(self._buffer, 0)[0]
        except RemoteProtocolError as fault:
            return Piece(self._buffer, fault=fault.description)

    def _skip_empty(self) -> bool:
        """Drop empty frames; whether there were any."""
        before = len(self._buffer)
        while (piece := self._peek()) is not None and piece.is_empty:
            self._buffer = self._buffer[len(piece.octets) :]
        return len(self._buffer) < before

    def _took(self, piece: Piece) -> Piece:
        self._buffer = self._buffer[len(piece.octets) :]
        self.last = piece
        self.transcript.append(f"<- {describe(piece)}")
        self.remember(piece)
        return piece

    async def _read(self) -> None:
        try:
            data = await self.stream.receive_some(_READ_SIZE)
        except trio.BrokenResourceError as lost:
            self._ended = f"the stream broke: {lost}"
            return
        self._buffer += data
        if not data:
            self._ended = "the stream has ended"

    def _unread(self) -> list[str]:
        if not self._buffer:
            return [] if self._ended is None else [self._ended]
        return [
            "unread:",
            *(f"    {describe(piece)}" for piece in read_pieces(self._buffer)),
            *hexdump(self._buffer)[:8],
        ]

    def _failure(self, lines: list[str]) -> AssertionError:
        story = self.transcript[-_STORY:] or ["(nothing)"]
        return AssertionError("\n".join([*lines, "after:", *(f"    {line}" for line in story)]))
