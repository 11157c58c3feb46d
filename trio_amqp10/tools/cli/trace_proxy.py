"""``amqp10 trace --listen URL --to URL``: forward octets, and print the frames.

Octets are forwarded unchanged, even if they cannot be decoded. Frames are printed after their octets are
forwarded. If the reader of the output is slow, the peers are slowed down too, by the flow control of TCP.
"""

from __future__ import annotations

import ssl
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

import trio

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.tls import server_context
from trio_amqp10.net.tls_options import TlsOptions
from trio_amqp10.net.tls_stream import LINGER, start_tls
from trio_amqp10.net.transports import bind, connect, listener_url, peer_host
from trio_amqp10.net.urls import Url, parse_url, schemes_of
from trio_amqp10.tools.trace.frame_log import Entry
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter
from trio_amqp10.tools.trace.html_page import html_page
from trio_amqp10.tools.trace.page_model import PageModel

from .command_runner import CommandError, explain, say, taken_port, write_out
from .trace import lines_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.tools.trace.frame_log import Way
    from trio_amqp10.tools.trace.pieces import Piece

    from .command_runner import Interrupts
    from .dial_options import DialOptions

Closable = TypeVar("Closable", bound=trio.abc.AsyncResource)

_CHUNK: Final = 64 * 1024
"""Octets to read at once."""
_BACKLOG: Final = 100
"""Chunks whose frames may wait to be printed; more make the writing peer wait."""
_HANDSHAKE: Final = 10.0
"""Seconds for the TLS handshake of each end."""


@dataclass(frozen=True, kw_only=True)
class ProxyOptions:
    """The options of ``amqp10 trace --listen``."""

    listen: str
    to: str
    html: str | None = None
    octets: bool = False
    listen_cert: str | None = None
    listen_key: str | None = None
    dial: DialOptions


async def trace_proxy(options: ProxyOptions, interrupts: Interrupts) -> None:
    """Forward and print until interrupted, then write the page if requested.

    Raises:
        CommandError: the reader of stdout has closed it, or the certificate and the key do not match.
        LocalProtocolError: the options of TLS contradict each other.
        OSError: the URL cannot be listened at, or the page cannot be written.
    """
    listen, target = (parse_url(url, schemes_of("amqp091")) for url in (options.listen, options.to))
    proxy = _Proxy(options, listen, target)
    if options.html is not None:
        Path(options.html).open("a").close()  # noqa: ASYNC230 - fails now rather than at the end
    with taken_port("--listen"):
        listeners = await bind(listen)
    for listener in listeners:
        say(f"listening {listener_url(listen, listener)}, forwarding to {target}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(proxy.print_lines, nursery.cancel_scope)
        with interrupts.here():
            await trio.serve_listeners(proxy.carry, listeners)
        proxy.lines.close()
    if options.html is not None:
        page = html_page(proxy.model, title=f"{options.listen} to {options.to}", notes=proxy.notes)
        Path(options.html).write_text(page, encoding="utf-8")  # noqa: ASYNC240 - no other task runs
        say(f"amqp10: wrote {len(proxy.model)} frames to {options.html}")
    if proxy.failure is not None:
        raise proxy.failure


class _Proxy:
    """The connections of the proxy, and the frames to show."""

    def __init__(self, options: ProxyOptions, listen: Url, target: Url) -> None:
        self.model = PageModel()
        self.notes: list[str] = []
        self.failure: CommandError | None = None
        self.lines, self._to_print = trio.open_memory_channel[str](_BACKLOG)
        self._options = options
        self._target = target
        self._count = 0
        self._began: float | None = None
        dial = options.dial
        self._tls = TlsOptions(
            cafile=dial.cafile, certfile=dial.cert, keyfile=dial.key, insecure=dial.insecure
        )
        self._tls.layers_for(target)
        self._context = _server_context(options, listen)

    async def print_lines(self, everything: trio.CancelScope) -> None:
        """Write lines as they arrive; if stdout is closed, end the proxy."""
        try:
            async for text in self._to_print:
                more = self._to_print.statistics().current_buffer_used
                await write_out(
                    "".join([text, *(self._to_print.receive_nowait() for _ in range(more))]).encode()
                )
        except CommandError as nobody:
            self.failure = nobody
            everything.cancel()

    async def carry(self, stream: trio.SocketStream) -> None:
        """Forward one connection until it ends. Cancelled: both ends are closed."""
        self._count += 1
        number = self._count
        self._note(f"conversation {number}: {peer_host(stream) or 'this machine'} -> {self._target}")
        splitters: dict[Way, FrameSplitter] = {">": FrameSplitter(), "<": FrameSplitter()}
        try:
            async with AsyncExitStack() as stack:
                near = await self._accept(stream, stack)
                far = await self._dial(stack)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._pass_on, number, ">", splitters[">"], near, far)
                    nursery.start_soon(self._pass_on, number, "<", splitters["<"], far, near)
        except* (AmqpError, OSError, trio.BrokenResourceError, trio.TooSlowError) as failures:
            self._note(f"conversation {number}: {_reason(failures)}")
        finally:
            with trio.move_on_after(LINGER, shield=True):
                for way, splitter in splitters.items():
                    if pieces := splitter.finish():
                        await self.lines.send(self._shown(number, way, pieces))

    async def _accept(self, stream: trio.SocketStream, stack: AsyncExitStack) -> trio.abc.HalfCloseableStream:
        await stack.enter_async_context(_closing(stream))
        if self._context is None:
            return stream
        with trio.fail_after(_HANDSHAKE):
            secured = await start_tls(stream, self._context, server_side=True)
        return await stack.enter_async_context(_closing(secured))

    async def _dial(self, stack: AsyncExitStack) -> trio.abc.HalfCloseableStream:
        stream = await connect(self._target)
        transport = await self._tls.put_on(stream, self._target, seconds=_HANDSHAKE)
        far = await stack.enter_async_context(_closing(transport.stream))
        assert isinstance(far, trio.abc.HalfCloseableStream)  # streams of TCP and TLS are half-closeable
        return far

    async def _pass_on(
        self,
        number: int,
        way: Way,
        splitter: FrameSplitter,
        source: trio.abc.HalfCloseableStream,
        sink: trio.abc.HalfCloseableStream,
    ) -> None:
        """Forward one direction and its end; split each chunk into frames, and print them."""
        while data := bytes(await source.receive_some(_CHUNK)):
            # After a fault that hides where the next frame begins (which was printed), octets are forwarded without decoding.
            shown = self._shown(number, way, splitter.feed(data)) if splitter.lost is None else ""
            await sink.send_all(data)
            if shown:
                await self.lines.send(shown)
        with suppress(trio.BrokenResourceError):  # the receiving end is already closed
            await sink.send_eof()

    def _shown(self, number: int, way: Way, pieces: list[Piece]) -> str:
        """Add frames to the page, and return their lines."""
        lines: list[str] = []
        now = trio.current_time()
        self._began = now if self._began is None else self._began
        for piece in pieces:
            entry = Entry(number, way, piece, now - self._began)
            if self._options.html is not None:
                self.model.feed(entry)
            lines += lines_of(entry, several=True, octets=self._options.octets)
        return "".join(f"{line}\n" for line in lines)

    def _note(self, text: str) -> None:
        say(text)
        self.notes.append(text)


@asynccontextmanager
async def _closing(stream: Closable) -> AsyncGenerator[Closable]:
    """Close a stream at the end, by force if the peer does not read the end of TLS."""
    try:
        yield stream
    finally:
        with trio.move_on_after(LINGER):
            await stream.aclose()


def _server_context(options: ProxyOptions, listen: Url) -> ssl.SSLContext | None:
    if listen.scheme != "amqps":
        if options.listen_cert is not None:
            raise CommandError(
                f"--listen-cert is for TLS, which {listen} does not use: use amqps:// in --listen"
            )
        return None
    if options.listen_cert is None:
        raise CommandError(
            f'{listen} needs a certificate: give --listen-cert ("amqp10 certs" makes certificates)'
        )
    try:
        return server_context(options.listen_cert, options.listen_key)
    except ssl.SSLError as failure:
        files = ", ".join(filter(None, (options.listen_cert, options.listen_key)))
        raise CommandError(
            f"these files are not a matching certificate and key: {files} ({failure})"
        ) from None


def _reason(failures: BaseExceptionGroup[Exception]) -> str:
    """Describe why a connection ended early."""
    known = explain(failures)
    if known is not None:
        return known
    first: BaseException = failures
    while isinstance(first, BaseExceptionGroup):
        first = cast("BaseExceptionGroup[BaseException]", first).exceptions[0]
    return f"connection lost: {first}"
