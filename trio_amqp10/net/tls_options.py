"""TLS and WebSocket options of the dialling end, and the layers they lead to.

Knows URLs and layers, and no dialect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from trio_amqp10.core.errors import LocalProtocolError

from .tls import check_client_context, client_context
from .transport_layers import Transport, check_layers, dial_layers, has_tls, layers_of

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Sequence

    from .transport_layers import Layers
    from .urls import Url


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """Options of layers and TLS.

    Has no slots, so that another options class can inherit it together with other options.

    Raises:
        LocalProtocolError: the options contradict each other, or would be unsafe.
    """

    layers: Sequence[str] | None = None
    ssl_context: ssl.SSLContext | None = None
    cafile: str | os.PathLike[str] | None = None
    certfile: str | os.PathLike[str] | None = None
    keyfile: str | os.PathLike[str] | None = None
    server_hostname: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        files = {"cafile": self.cafile, "certfile": self.certfile, "keyfile": self.keyfile}
        given = [name for name, value in files.items() if value is not None]
        if self.ssl_context is not None:
            if given:
                raise LocalProtocolError(
                    f"ssl_context and {given[0]} exclude each other: load the file into the context"
                )
            check_client_context(self.ssl_context, insecure=self.insecure)
        if self.keyfile is not None and self.certfile is None:
            raise LocalProtocolError("keyfile needs certfile: set the certificate that belongs to the key")
        if self.insecure and self.cafile is not None:
            raise LocalProtocolError("insecure=True would ignore cafile: leave out one of them")

    @property
    def asks_for_tls(self) -> bool:
        """Whether any option concerns TLS, so that TLS is required."""
        return self.insecure or any(
            value is not None
            for value in (self.ssl_context, self.cafile, self.certfile, self.server_hostname)
        )

    def layers_for(self, url: Url | None) -> Layers:
        """Return the layers to put on a stream.

        Raises:
            LocalProtocolError: TLS is required, but the layers have none.
        """
        scheme = () if url is None else layers_of(url.scheme)
        layers = check_layers(scheme if self.layers is None else self.layers)
        if has_tls(scheme) and not has_tls(layers):
            raise LocalProtocolError(f"layers={layers!r} would take the TLS out of {url}: add 'tls'")
        if self.asks_for_tls and not has_tls(layers):
            where = "a stream without layers" if url is None else url
            raise LocalProtocolError(
                f"{where} has no TLS, so ssl_context, cafile, certfile, server_hostname and insecure have "
                "no effect: use amqps://, or set layers, as in layers=['tls']"
            )
        if has_tls(layers) and not self.insecure and not (self.server_hostname or (url and url.host)):
            raise LocalProtocolError(
                "no host name to verify the certificate of the peer against: give the name in it as server_hostname='...'"
            )
        return layers

    def make_context(self) -> ssl.SSLContext:
        """Return the context to dial with.

        Raises:
            OSError: a file cannot be read, or has the wrong content.
        """
        if self.ssl_context is not None:
            return self.ssl_context
        return client_context(
            self.cafile, certfile=self.certfile, keyfile=self.keyfile, insecure=self.insecure
        )

    async def put_on(
        self,
        stream: trio.abc.Stream,
        url: Url | None,
        *,
        peer: str | None = None,
        seconds: float | None = None,
    ) -> Transport:
        """Put the layers on a dialled stream.

        Args:
            stream: closed if anything fails.
            url: the dialled URL; None for a stream of the program's own.
            peer: the name that the certificate must have if ``server_hostname`` is not set; the URL's host if None.
            seconds: that each layer may take; None for any time.

        Raises:
            LocalProtocolError: as in ``layers_for``.
            SecurityError, RemoteProtocolError, ConnectionClosedError: as in ``dial_layers``.
            OSError: as in ``make_context``.

        Cancelled: the stream is closed.
        """
        try:
            layers = self.layers_for(url)
            if not layers:
                return Transport(stream=stream)
            host = (url.host if url is not None and url.host else self.server_hostname) or "localhost"
            return await dial_layers(
                stream,
                layers,
                context=self.make_context() if has_tls(layers) else None,
                server_hostname=self.server_hostname or peer or host,
                host=host if url is None or not url.port else url.authority,
                path="/" if url is None or url.scheme == "amqp+unix" else url.path,
                seconds=seconds,
            )
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
