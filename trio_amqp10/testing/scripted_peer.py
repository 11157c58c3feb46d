"""A peer that follows a script frame by frame, and reports differences.

One class for both roles: it may dial or be dialled, over any trio stream. Frames are written and read with the codec
of this library, but not by an engine, so a script may break every rule of the standard. The peer answers nothing by itself;
the usual answers are methods (``accept_open`` ...).

Empty frames are ignored unless one is expected, because they may arrive at any time (2.4.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast, overload

import trio

from trio_amqp10.amqp10.message import encode_message
from trio_amqp10.amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import AMQP_FRAME, EMPTY_FRAME, SASL_FRAME, encode_frame
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER, SASL_HEADER, TLS_HEADER
from trio_amqp10.net.transports import connect
from trio_amqp10.net.urls import parse_url
from trio_amqp10.tools.trace.frame_splitter import Piece, piece_at, read_pieces
from trio_amqp10.tools.trace.frame_text import describe, hexdump

from .expectations import Expectation, octet_differences
from .scripted_defaults import ScriptedDefaults

if TYPE_CHECKING:
    from types import TracebackType

P = TypeVar("P")

_READ_SIZE: Final = 65_536
_STORY: Final = 12
"""The number of lines of the conversation that a failure shows."""


class ScriptedPeer(ScriptedDefaults):
    """One end of a stream, driven by a test; ``async with`` closes it.

    Args:
        stream: a stream to the peer under test.
        timeout: seconds of trio's clock until a wait fails.

    Attributes:
        last: the last received piece: its ``channel``, ``performative``, ``payload`` and ``octets``.
        transcript: the conversation so far, one line for each piece; ``->`` marks our own.
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
    async def dial(cls, url: str, *, timeout: float = 5.0) -> Self:  # noqa: ASYNC109 - the limit of each later wait
        """Dial ``url``: ``async with await ScriptedPeer.dial(url) as peer``.

        Raises:
            OSError: no peer answers at the URL.
            LocalProtocolError: ``url`` is not a URL.

        Cancelled: nothing stays open.
        """
        return cls(await connect(parse_url(url)), timeout=timeout)

    # -- write ------------------------------------------------------------------------------

    async def send(self, *what: Any, channel: int = 0, payload: Any = b"") -> None:
        """Write performatives or raw octets, all as one chunk.

        Args:
            what: performatives, each of which becomes a frame, or raw octets.
            channel: the channel of these frames; SASL frames have none.
            payload: the payload of the last performative: octets, or a message to encode.

        Raises:
            AssertionError: the peer has closed the stream.
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
            raise self._failure([f"the peer has closed the stream: {lost!r}"]) from lost

    async def send_empty(self) -> None:
        """Write an empty frame, which only keeps the connection alive (2.4.5).

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
        """Read the next frame, or the next octets, and compare them.

        Args:
            what: a class of performatives, with the fields to compare as keywords; a performative, all of
                whose fields are compared; or octets.
            channel: the expected channel; None for any.
            payload: the expected octets after the performative; None for any.
            fields: the expected fields. None means absent, a mapping compares some fields of a composite
                (``source={"address": "q"}``), and a function returns whether it accepts the value.

        Returns:
            The performative, or the octets. ``last`` has the whole frame.

        Raises:
            AssertionError: the frame differs, or nothing arrives in time; the message shows every difference.

        Cancelled: nothing was read.
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
        """Expect the protocol header of a layer: ``amqp``, ``sasl`` or ``tls`` (2.2).

        Raises:
            AssertionError: as for ``expect``.

        Cancelled: nothing was read.
        """
        await self.expect({"amqp": AMQP_HEADER, "sasl": SASL_HEADER, "tls": TLS_HEADER}[layer])

    async def expect_empty(self) -> None:
        """Expect an empty frame (2.4.5). Cancelled: nothing was read."""
        piece = await self._next("an empty frame", skip_empty=False)
        if not piece.is_empty:
            raise self._failure([f"expected an empty frame, got {describe(piece)}"])
        self._took(piece)

    async def expect_nothing(self, seconds: float) -> None:
        """Expect no frame but empty ones for ``seconds`` of trio's clock.

        Raises:
            AssertionError: another frame arrived, or the stream has ended.

        Cancelled: nothing was read.
        """
        with trio.move_on_after(seconds):
            while self._ended is None and (not self._buffer or self._skip_empty()):
                if not self._buffer:
                    await self._read()
        if self._buffer or self._ended is not None:
            raise self._failure(["expected nothing", *self._unread()])

    async def expect_eof(self) -> None:
        """Expect the end of the stream, or a broken stream, with only empty frames before.

        Raises:
            AssertionError: another frame arrived, or the stream did not end in time.

        Cancelled: nothing was read.
        """
        with trio.move_on_after(self.timeout) as patience:
            while self._ended is None and (not self._buffer or self._skip_empty()):
                if not self._buffer:
                    await self._read()
        if patience.cancelled_caught or self._buffer:
            raise self._failure(["expected the end of the stream", *self._unread()])
        self.transcript.append("<- the end of the stream")

    async def skip_to(self, what: type[P], /, **fields: Any) -> P:
        """Ignore frames until one is of this class, and expect these fields of it.

        Raises:
            AssertionError: a field differs, or no such frame arrives in time.

        Cancelled: the ignored frames are lost.
        """
        while not isinstance((piece := await self._next(what.__name__)).performative, what):
            self._took(piece)
        return await self.expect(what, **fields)

    async def next(self) -> Piece:
        """Return the next piece that is not an empty frame.

        Raises:
            AssertionError: nothing arrives in time.

        Cancelled: nothing was read.
        """
        return self._took(await self._next("anything"))

    async def peek(self, wanted: str = "anything") -> Piece:
        """Return the next piece that is not an empty frame, and leave it for ``expect``.

        Args:
            wanted: the name of the expected piece, for a failure.

        Raises:
            AssertionError: nothing arrives in time.

        Cancelled: nothing was read.
        """
        return await self._next(wanted)

    async def aclose(self) -> None:
        """Close the stream without a close frame. Cancelled: the stream is closed."""
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
            late = [f"only {len(got)} octets arrived in {self.timeout:g} s"] * patience.cancelled_caught
            raise self._failure([f"expected {len(want)} octets:", *octet_differences(want, got), *late])
        self._buffer = self._buffer[len(want) :]
        self.transcript += [f"<- {describe(piece)}" for piece in read_pieces(got)]
        return got

    async def _next(self, wanted: str, *, skip_empty: bool = True) -> Piece:
        """Return the next piece, which stays in the buffer."""
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
        why = f"nothing arrived for {self.timeout:g} s" if patience.cancelled_caught else self._ended
        raise self._failure([f"expected {wanted}, but {why}", *self._unread()])

    def _peek(self) -> Piece | None:
        try:
            return piece_at(self._buffer, 0)[0]
        except RemoteProtocolError as fault:
            return Piece(self._buffer, fault=fault.description)

    def _skip_empty(self) -> bool:
        """Drop empty frames; return whether there were any."""
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
