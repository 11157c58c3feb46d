"""A TLS handshake on any stream, and the stream that it gives (5.2).

trio's ``SSLStream`` does the work. Around it, words for what went wrong; the alert that OpenSSL writes for the
peer when a handshake fails, which would else never be sent; and an end without ``close_notify`` told
from one with it, since anybody on the way can cut a connection short (RFC 8446, section 6.1).

Knows nothing of AMQP.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.channel_binding import tls_server_end_point
from trio_amqp10.errors import SecurityError

from .tls import Certificate, ServerContext, name_asked_for

if TYPE_CHECKING:
    from typing import TypeAlias

    Secured: TypeAlias = "trio.SSLStream[trio.abc.Stream]"

__all__ = ["LINGER", "TlsStream", "part", "start_tls"]

LINGER: Final = 1.0
"""Seconds that last words may take to reach a peer that is sent away."""

_END_POINT: Final = "tls-server-end-point"
"""The one type of channel binding that the standard library's TLS 1.3 lets us have."""

_NOT_TLS: Final = b"\x15\x03\x03\x00\x02\x02\x0a"
"""A fatal alert, unexpected_message: where what came is no record of TLS, OpenSSL writes none (RFC 8446, section 6.2)."""

_HINTS: Final = {
    9: "it is not valid yet: look at the clocks",
    10: "a new one has to be installed there",
    18: "it is signed by nobody but itself: give it as cafile=...",
    19: "give its authority as cafile=...",
    20: "give its authority as cafile=...",
    62: "dial the name that it was made for",
    64: "dial the name that it was made for",
}
"""What to do, by OpenSSL's number of what is wrong with a server's certificate."""


class _Recorder:
    """Stands in for a context when ``SSLStream`` makes its buffers, to keep them within reach."""

    def __init__(self, context: ssl.SSLContext, head: bytes) -> None:
        self._context = context
        self._head = head
        self.outgoing: ssl.MemoryBIO = ssl.MemoryBIO()
        self.tls: ssl.SSLObject | None = None

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: Any) -> ssl.SSLObject:
        incoming.write(self._head)
        self.outgoing = outgoing
        self.tls = self._context.wrap_bio(incoming, outgoing, **options)
        return self.tls

    def close_notify(self) -> bytes:
        """The octets that tell the peer of our end."""
        assert self.tls is not None
        with contextlib.suppress(ssl.SSLError):  # want-read: the peer's is not there yet
            self.tls.unwrap()
        return self.outgoing.read()


class TlsStream(trio.abc.HalfCloseableStream):
    """What ``SSLStream`` is, with errors that say what happened, and with an end for each direction.

    Attributes:
        channel_bindings: what ties an exchange to this connection, by type (RFC 5056).
        peer_certificate: the peer's, if it was asked for and verified.
        server_name: whom the peer asked for by SNI, on the accepting side; or None.
        verified: whether whom we dialled proved to be who we meant; of no meaning to a listener.
    """

    def __init__(
        self, inner: Secured, recorder: _Recorder, own_certificate: bytes | None, *, verified: bool
    ) -> None:
        self._inner = inner
        self._recorder = recorder
        self._ended = False
        self.verified: Final = verified
        self.server_name: Final = None if recorder.tls is None else name_asked_for(recorder.tls)
        self.peer_certificate: Final = _peer_certificate(inner)
        self.channel_bindings: Final[dict[str, bytes]] = _channel_bindings(inner, own_certificate)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As of any stream. Cancelled: the stream is of no use any more."""
        self._check_ended()
        await self._inner.send_all(data)

    async def send_eof(self) -> None:
        """Say ``close_notify``, and go on reading. Cancelled: the stream is of no use any more."""
        if self._ended:
            await trio.lowlevel.checkpoint()
            return
        await (
            self._inner.wait_send_all_might_not_block()
        )  # raises where there is nobody to tell, or another sender
        self._ended = True
        await self._inner.transport_stream.send_all(self._recorder.close_notify())

    async def wait_send_all_might_not_block(self) -> None:
        """As of any stream. Cancelled: nothing has happened."""
        self._check_ended()
        await self._inner.wait_send_all_might_not_block()

    def _check_ended(self) -> None:
        if self._ended:
            raise trio.ClosedResourceError("this side of the TLS connection was closed here")

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """As of any stream.

        Raises:
            SecurityError: the peer says that it does not accept our side of the handshake.
            trio.BrokenResourceError: the stream is of no use any more, or it ended too early.

        Cancelled: no octet is lost.
        """
        try:
            return await self._inner.receive_some(max_bytes)
        except trio.BrokenResourceError as broken:
            cause = broken.__cause__
            if _is_alert(cause):
                raise SecurityError(_words(cause)) from cause
            if _is_eof(cause):
                if self._ended:
                    return b""  # a peer that is told of the end may well go without a word
                raise trio.BrokenResourceError(
                    "the TLS connection was cut off without close_notify: what came last may be missing"
                ) from cause
            raise

    async def aclose(self) -> None:
        """Say ``close_notify`` and close; the peer's is not awaited.

        Cancelled: the stream below is closed all the same.
        """
        await self._inner.aclose()


async def start_tls(
    stream: trio.abc.Stream,
    context: ssl.SSLContext,
    *,
    server_hostname: str | None = None,
    server_side: bool = False,
    head: bytes = b"",
) -> TlsStream:
    """Do the handshake, and nothing else: neither side has sent an octet inside TLS when it returns.

    Args:
        stream: what lies below.
        context: ours.
        server_hostname: whom we mean to reach, for SNI and for the certificate to prove.
        server_side: whether the peer is the client.
        head: octets that were read from ``stream`` already.

    Raises:
        SecurityError: one of the two does not accept the other's side of it.
        trio.BrokenResourceError: the stream ended.

    Cancelled: the stream below is of no use any more.
    """
    # Before any await, so that a reload meanwhile does not tell us of another certificate.
    own = _certificate_of(context)
    recorder = _Recorder(context, head)
    inner = trio.SSLStream(
        stream, cast("ssl.SSLContext", recorder), server_hostname=server_hostname, server_side=server_side
    )
    try:
        await inner.do_handshake()
    except trio.BrokenResourceError as broken:
        cause = broken.__cause__
        alert = recorder.outgoing.read()
        if server_side and not alert and not _is_eof(cause) and not _is_alert(cause):
            alert = _NOT_TLS  # or a client that did begin with TLS would hear of an end, and of no reason
        if alert:
            await part(stream, alert)
        if isinstance(cause, ssl.SSLError) and not _is_eof(cause):
            raise SecurityError(_words(cause, server_hostname)) from cause
        raise trio.BrokenResourceError("the peer ended the transport during the TLS handshake") from cause
    if inner.context is not context:  # an sni_callback chose another, for the name that the client gave
        own = _certificate_of(inner.context)
    return TlsStream(
        inner, recorder, own, verified=context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    )


async def part(stream: trio.abc.Stream, octets: bytes) -> None:
    """Say last words to a peer that is sent away, and give it a moment to read them.

    Closing over octets that nobody has read would have the system reset the connection, and the words be lost.

    Cancelled: they may have been said or not.
    """
    with trio.move_on_after(LINGER), contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await stream.send_all(octets)
        if isinstance(stream, trio.abc.HalfCloseableStream):
            await stream.send_eof()
        while await stream.receive_some(4096):
            pass


def _certificate_of(context: ssl.SSLContext) -> bytes | None:
    return context.certificate if isinstance(context, ServerContext) else None


def _peer_certificate(stream: Secured) -> Certificate | None:
    der = stream.getpeercert(binary_form=True)
    fields = stream.getpeercert()  # empty for one that nobody verified
    return Certificate(der, fields) if der and fields else None


def _channel_bindings(stream: Secured, own_certificate: bytes | None) -> dict[str, bytes]:
    der = own_certificate if stream.server_side else stream.getpeercert(binary_form=True)
    end_point = None if der is None else tls_server_end_point(der)
    return {} if end_point is None else {_END_POINT: end_point}


def _is_alert(cause: BaseException | None) -> bool:
    return isinstance(cause, ssl.SSLError) and "_ALERT_" in (cause.reason or "")


def _is_eof(cause: BaseException | None) -> bool:
    if isinstance(cause, (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)):
        return True
    return isinstance(cause, ssl.SSLError) and cause.reason == "UNEXPECTED_EOF_WHILE_READING"


def _words(cause: BaseException | None, server_hostname: str | None = None) -> str:
    """What went wrong in a handshake, for people."""
    assert isinstance(cause, ssl.SSLError)
    if isinstance(cause, ssl.SSLCertVerificationError):
        whose = (
            "the client's certificate"
            if server_hostname is None
            else f"the certificate of {server_hostname!r}"
        )
        hint = _HINTS.get(cause.verify_code) if server_hostname is not None else None
        return f"{whose} does not hold: {cause.verify_message}" + (f"; {hint}" if hint else "")
    reason = (cause.reason or str(cause)).lower().replace("_", " ")
    if _is_alert(cause):
        hint = ""
        if (cause.reason or "").endswith("UNEXPECTED_MESSAGE"):
            hint = "; what reached it is not what we sent: look at what is between the two"
        return f"the peer refused our side of the TLS handshake: {reason}{hint}"
    if cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL"):
        return f"what the peer sent is not TLS ({reason})"
    return f"the TLS handshake failed: {reason}"
