"""Layers between a stream and AMQP: TLS, WebSocket, TLS by header (2.2, 5.2).

A stack of layers is a tuple of their names, lowest first. A dialler puts on the given layers, one by one; an
acceptor has a set of stacks that it accepts, and if these differ, the first octets select the next layer. No layer
is ever left out because the peer prefers less security.

Each layer reads exactly its own octets: the octets after the eight of a TLS header belong to TLS, so no octet
that was sent in the clear is read as if it came inside TLS. Knows that SASL or AMQP comes next, and nothing more of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import trio

from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError, SecurityError
from trio_amqp10.core.protocol_headers import TLS_HEADER, TLS_ID

from .errors import ConnectionClosedError
from .tls_header import InvalidProtocolHeaderError, ask_for_tls, receive_header
from .tls_stream import TlsStream, send_last_octets, start_tls
from .websocket import accept_websocket, dial_websocket, has_wsproto, require_wsproto

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Generator, Iterable, Mapping

    from .tls import Certificate

Layer: TypeAlias = Literal["tls", "websocket", "in-band-tls"]
Layers: TypeAlias = tuple[Layer, ...]

_ORDER: Final[Layers] = ("tls", "websocket", "in-band-tls")
"""Only AMQP or SASL may follow in-band TLS (5.2.1); a WebSocket begins with HTTP."""

_SCHEMES: Final[Mapping[str, Layers]] = {
    "amqp": (),
    "amqps": ("tls",),
    "amqp+tls": ("in-band-tls",),
    "amqpws": ("websocket",),
    "amqpwss": ("tls", "websocket"),
    "amqp+unix": (),
}
_EVERY: Final[tuple[Layers, ...]] = ((), ("tls",), ("in-band-tls",), ("websocket",), ("tls", "websocket"))

_TLS_RECORD: Final = 0x16
_HTTP_GET: Final = ord("G")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """A stream that is ready for SASL or AMQP, with the data of its layers.

    Attributes:
        stream: the topmost stream.
        layers: the layers below it, lowest first.
        private: whether TLS ensures that only the intended peer can read what is sent.
        channel_bindings, peer_certificate: as in ``TlsStream``.
        head: octets that were read already, to select the layer or dialect.
        server_name: the host name that the client asked for by SNI, on the accepting side; or None.
    """

    stream: trio.abc.Stream
    layers: Layers = ()
    private: bool = False
    channel_bindings: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    peer_certificate: Certificate | None = None
    head: bytes = b""
    server_name: str | None = None


def layers_of(scheme: str) -> Layers:
    """Return the layers of a URL's scheme."""
    return _SCHEMES[scheme]


def check_layers(layers: Iterable[str]) -> Layers:
    """Return the layers, if they can be stacked in this order.

    Raises:
        LocalProtocolError: a name is unknown, occurs twice or in a wrong order; or wsproto is needed
            and not installed.
    """
    stack = tuple(layers)
    if [name for name in _ORDER if name in stack] != list(stack):
        raise LocalProtocolError(
            f"layers={stack!r}: expected 'tls', 'websocket' and 'in-band-tls', in this order, each at most once"
        )
    if "websocket" in stack:
        require_wsproto("a WebSocket")
    return cast("Layers", stack)


def has_tls(stack: Layers) -> bool:
    """Whether the stack contains TLS at any level."""
    return "tls" in stack or "in-band-tls" in stack


def no_less_secret(stack: Layers, *, tls: bool) -> frozenset[Layers]:
    """Return all distinguishable stacks that are at least as secret as ``stack``.

    Stacks with TLS are included only if ``tls`` is True; those with a WebSocket only if wsproto is installed.
    """
    found = {each for each in _EVERY if has_tls(each) >= has_tls(stack) and (tls or not has_tls(each))}
    if not has_wsproto():
        found = {each for each in found if "websocket" not in each}
    return frozenset(found | {stack})


# -- dialling -------------------------------------------------------------------------------


async def dial_layers(
    stream: trio.abc.Stream,
    layers: Layers,
    *,
    context: ssl.SSLContext | None,
    server_hostname: str | None,
    host: str,
    path: str,
    seconds: float | None,
) -> Transport:
    """Put ``layers`` on a stream.

    Args:
        stream: the dialled stream.
        layers: lowest first.
        context: for TLS; required if ``layers`` contains TLS.
        server_hostname: the name that the certificate must have.
        host, path: the host and path that a WebSocket requests.
        seconds: that each layer may take; None for any time.

    Raises:
        SecurityError: the peer is not the intended one, or asks us to continue with less security.
        RemoteProtocolError: the peer speaks another protocol.
        ConnectionClosedError: the peer closed the connection, or took too long.

    Cancelled: the stream can no longer be used.
    """
    transport = Transport(stream=stream)
    for layer in layers:
        with handshake_errors(seconds, layer):
            if layer == "websocket":
                top: trio.abc.Stream = await dial_websocket(transport.stream, host, path or "/")
                transport = _on_top(transport, layer, top)
                continue
            assert context is not None
            below = transport.stream
            if layer == "in-band-tls":
                below = await ask_for_tls(below)
            secured = await start_tls(below, context, server_hostname=server_hostname)
            transport = _secured(transport, layer, secured, private=secured.verified)
    return transport


# -- accepting ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLayers:
    """The layers that an acceptor permits.

    Attributes:
        stacks: the permitted stacks; at least one, which may be empty.
        context: for TLS; required if any stack contains TLS.
        path: the path that a WebSocket must request; ``/`` for any path.
        origins: the origins of web pages whose scripts may open a WebSocket.
        seconds: that each layer may take; None for any time.
        header_seconds: until the first octets; None for any time.
    """

    stacks: frozenset[Layers] = frozenset({()})
    context: ssl.SSLContext | None = None
    path: str = "/"
    origins: Collection[str] = ()
    seconds: float | None = None
    header_seconds: float | None = None

    async def admit(self, stream: trio.abc.Stream) -> Transport:
        """Put on the layers that the peer requests, if they are permitted.

        Raises:
            SecurityError, RemoteProtocolError, ConnectionClosedError: as in ``dial_layers``. The peer was sent the reason, if
                its protocol permits that.

        Cancelled: the stream can no longer be used.
        """
        transport = Transport(stream=stream)
        while True:
            chosen: Layer | None
            nexts = self._nexts(transport.layers)
            if nexts == {None}:
                return transport
            if nexts in ({"tls"}, {"websocket"}):
                [chosen] = nexts
            else:
                with handshake_errors(self.header_seconds, None):
                    chosen, head = await self._look(transport.stream, nexts)
                transport = replace(transport, head=head)
            if chosen is None:
                return transport
            with handshake_errors(self.seconds, chosen):
                transport = await self._put_on(transport, chosen)

    def _nexts(self, below: Layers) -> set[Layer | None]:
        depth = len(below)
        return {
            stack[depth] if len(stack) > depth else None for stack in self.stacks if stack[:depth] == below
        }

    async def _look(
        self, stream: trio.abc.Stream, nexts: Collection[Layer | None]
    ) -> tuple[Layer | None, bytes]:
        """Select the next layer by the first octets; return it, and octets not yet used."""
        head = bytes(await stream.receive_some(1))
        if not head:
            raise trio.BrokenResourceError("the peer ended the transport before its first octet")
        # A record of TLS, a request of HTTP and a protocol header differ in their first octets.
        if head[0] == _TLS_RECORD and "tls" in nexts:
            return "tls", head
        if head[0] == _HTTP_GET and "websocket" in nexts:
            return "websocket", head
        if "in-band-tls" in nexts:
            # The header of TLS differs from those of AMQP and SASL in its protocol id (2.2).
            try:
                protocol_id, head = await receive_header(stream, head)
            except InvalidProtocolHeaderError as wrong:
                # Without permission for plain AMQP the answer is the header that is expected (2.2). Otherwise a
                # dialect may know these octets.
                if None not in nexts:
                    await send_last_octets(stream, TLS_HEADER)
                    raise
                return None, wrong.head
            if protocol_id == TLS_ID:
                return "in-band-tls", b""
            if None not in nexts:
                await send_last_octets(stream, TLS_HEADER)  # the header that it should have sent (2.2)
                raise SecurityError(
                    f"the peer began with protocol id {protocol_id}, and this listener requires TLS"
                )
        elif None not in nexts:
            raise RemoteProtocolError(
                f"a first octet of {head[0]:#04x}, where {_due(nexts)} is due", Condition.FRAMING_ERROR
            )
        return None, head

    async def _put_on(self, transport: Transport, layer: Layer) -> Transport:
        if layer == "websocket":
            top = await accept_websocket(
                transport.stream, path=self.path, origins=self.origins, head=transport.head
            )
            return _on_top(transport, layer, top)
        assert self.context is not None
        if layer == "in-band-tls":
            await transport.stream.send_all(TLS_HEADER)
        secured = await start_tls(transport.stream, self.context, server_side=True, head=transport.head)
        return _secured(transport, layer, secured, private=True)


def _on_top(transport: Transport, layer: Layer, stream: trio.abc.Stream) -> Transport:
    return replace(transport, stream=stream, layers=(*transport.layers, layer), head=b"")


def _secured(transport: Transport, layer: Layer, stream: TlsStream, *, private: bool) -> Transport:
    return Transport(
        stream=stream,
        layers=(*transport.layers, layer),
        private=private or transport.private,
        channel_bindings=stream.channel_bindings,
        peer_certificate=stream.peer_certificate,
        server_name=stream.server_name,
    )


_DOING: Final[Mapping[Any, str]] = {
    "tls": "during the TLS handshake",
    "in-band-tls": "during the TLS handshake",
    "websocket": "during the WebSocket handshake",
    None: "before its protocol header",
}


@contextlib.contextmanager
def handshake_errors(seconds: float | None, layer: Layer | None) -> Generator[None, None, None]:
    """Convert errors of a stream, and the end of the time, to errors of this package."""
    with trio.move_on_after(inf if seconds is None else seconds) as scope:
        try:
            yield
        except (trio.BrokenResourceError, trio.ClosedResourceError) as lost:
            raise ConnectionClosedError(
                f"the connection was lost {_DOING[layer]}: {lost or lost.__cause__}"
            ) from lost
    if scope.cancelled_caught:
        raise ConnectionClosedError(f"the peer took too long, {_DOING[layer]}")


def _due(nexts: Collection[Layer | None]) -> str:
    names = {"tls": "TLS", "websocket": "a WebSocket"}
    return " or ".join(text for name, text in names.items() if name in nexts)
