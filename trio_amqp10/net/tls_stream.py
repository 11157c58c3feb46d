"""A TLS handshake on any stream, and the stream inside TLS (5.2).

trio's ``SSLStream`` does the work. This module adds error messages; it sends the alert that OpenSSL writes when a handshake
fails, which ``SSLStream`` would not send; and it distinguishes an end without ``close_notify`` from one with it, because any
host on the path can cut a connection short (RFC 8446, section 6.1).

Knows nothing of AMQP.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.core.channel_binding import tls_server_end_point
from trio_amqp10.core.errors import SecurityError

from .tls import Certificate, ServerContext, name_asked_for

if TYPE_CHECKING:
    from typing import TypeAlias

    Secured: TypeAlias = "trio.SSLStream[trio.abc.Stream]"

LINGER: Final = 1.0
"""Seconds in which the last octets must reach a peer that is disconnected."""

_END_POINT: Final = "tls-server-end-point"
"""The only channel binding that the standard library permits in TLS 1.3."""

_NOT_TLS: Final = b"\x15\x03\x03\x00\x02\x02\x0a"
"""A fatal alert, unexpected_message (RFC 8446, section 6.2).

OpenSSL writes no alert if the octets received are no TLS record.
"""

_HINTS: Final = {
    9: "it is not valid yet: look at the clocks",
    10: "a new one must be installed on the server",
    18: "it is self-signed: give it as cafile=...",
    19: "give its authority as cafile=...",
    20: "give its authority as cafile=...",
    62: "dial the name that it was issued for",
    64: "dial the name that it was issued for",
}
"""Advice, by OpenSSL's number of the error in a server's certificate."""


class _Recorder:
    """A stand-in for a context that keeps the buffers that ``SSLStream`` makes."""

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
        """Return the octets that announce our end to the peer."""
        assert self.tls is not None
        with contextlib.suppress(ssl.SSLError):  # want-read: the peer's close_notify has not come yet
            self.tls.unwrap()
        return self.outgoing.read()


class TlsStream(trio.abc.HalfCloseableStream):
    """An ``SSLStream`` with clear errors, and with an end for each direction.

    Attributes:
        channel_bindings: data that bind an authentication to this connection, by type (RFC 5056).
        peer_certificate: the peer's, if it was requested and verified.
        server_name: the host name that the client asked for by SNI, on the accepting side; or None.
        verified: whether the dialled peer's certificate and host name were verified; has no meaning for a listener.
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
        """Send ``data``, as any stream. Cancelled: the stream can no longer be used."""
        self._check_ended()
        await self._inner.send_all(data)

    async def send_eof(self) -> None:
        """Send ``close_notify``; reading remains possible.

        Cancelled: the stream can no longer be used.
        """
        if self._ended:
            await trio.lowlevel.checkpoint()
            return
        # This raises if the stream has failed, or if another task is sending.
        await self._inner.wait_send_all_might_not_block()
        self._ended = True
        await self._inner.transport_stream.send_all(self._recorder.close_notify())

    async def wait_send_all_might_not_block(self) -> None:
        """Do the same as any stream. Cancelled: nothing has changed."""
        self._check_ended()
        await self._inner.wait_send_all_might_not_block()

    def _check_ended(self) -> None:
        if self._ended:
            raise trio.ClosedResourceError("this side of the TLS connection was closed here")

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Return octets, as any stream.

        Raises:
            SecurityError: the peer rejects our side of the handshake.
            trio.BrokenResourceError: the stream has failed, or it ended without ``close_notify``.

        Cancelled: no octet is lost.
        """
        try:
            return await self._inner.receive_some(max_bytes)
        except trio.BrokenResourceError as broken:
            cause = broken.__cause__
            if _is_alert(cause):
                raise SecurityError(_failure_text(cause)) from cause
            if _is_eof(cause):
                if self._ended:
                    return b""  # after our close_notify many peers close without their own
                raise trio.BrokenResourceError(
                    "the TLS connection was cut off without close_notify: the last octets may be missing"
                ) from cause
            raise

    async def aclose(self) -> None:
        """Send ``close_notify`` and close, without waiting for the peer's.

        Cancelled: the stream below is closed anyway.
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
    """Do the handshake; neither side has sent an octet inside TLS when it returns.

    Args:
        stream: the stream below.
        context: ours.
        server_hostname: the name to send by SNI, and to find in the certificate.
        server_side: whether the peer is the client.
        head: octets that were read from ``stream`` already.

    Raises:
        SecurityError: one peer rejects the other's side of the handshake.
        trio.BrokenResourceError: the stream ended.

    Cancelled: the stream below can no longer be used.
    """
    # Read it before any await, because a reload during the handshake replaces it.
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
            alert = _NOT_TLS  # otherwise a client would see an end without a reason
        if alert:
            await send_last_octets(stream, alert)
        if isinstance(cause, ssl.SSLError) and not _is_eof(cause):
            raise SecurityError(_failure_text(cause, server_hostname)) from cause
        raise trio.BrokenResourceError("the peer ended the transport during the TLS handshake") from cause
    if inner.context is not context:  # an sni_callback chose another one, by the client's SNI name
        own = _certificate_of(inner.context)
    return TlsStream(
        inner, recorder, own, verified=context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    )


async def send_last_octets(stream: trio.abc.Stream, octets: bytes) -> None:
    """Send last octets to a peer that is disconnected, and let it read them.

    If we closed while octets of the peer are unread, the system would reset the connection, and ours would be lost.

    Cancelled: the octets may have been sent or not.
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
    fields = stream.getpeercert()  # empty for a certificate that was not verified
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


def _failure_text(cause: BaseException | None, server_hostname: str | None = None) -> str:
    """Return a message for a failed handshake."""
    assert isinstance(cause, ssl.SSLError)
    if isinstance(cause, ssl.SSLCertVerificationError):
        whose = (
            "the client's certificate"
            if server_hostname is None
            else f"the certificate of {server_hostname!r}"
        )
        hint = _HINTS.get(cause.verify_code) if server_hostname is not None else None
        return f"{whose} is not valid: {cause.verify_message}" + (f"; {hint}" if hint else "")
    reason = (cause.reason or str(cause)).lower().replace("_", " ")
    if _is_alert(cause):
        advice = ""
        if (cause.reason or "").endswith("UNEXPECTED_MESSAGE"):
            advice = "; it received other octets than this side sent: look for a proxy between the two"
        return f"the peer refused the TLS handshake of this side: {reason}{advice}"
    if cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL"):
        return f"the input from the peer is not TLS ({reason})"
    return f"the TLS handshake failed: {reason}"
