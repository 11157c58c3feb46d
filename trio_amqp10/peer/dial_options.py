"""The options of a connection that this end dials, each declared once; ``open_connection`` describes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from trio_amqp10.engine.options import OpenOptions, symbols
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.layers import check_layers, has_tls, layers_of
from trio_amqp10.net.tls import check_client_context, client_context

from .options import ANONYMOUS_RELAY
from .sole import CAPABILITY as SOLE
from .sole import sole_properties

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Collection, Sequence

    import trio

    from trio_amqp10.engine.options import OpenKeywords
    from trio_amqp10.net.layers import Layers
    from trio_amqp10.net.urls import Url
    from trio_amqp10.sasl import ClientMechanism

    from .sole import SolePolicy

__all__ = ["DialOptions", "SaslChoice", "TlsOptions", "WhereAndOptions"]

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | Literal[False] | None"


@dataclass(frozen=True, kw_only=True)
class TlsOptions:
    """Options of layers and TLS. Without slots, so that another options class can inherit them beside its own.

    Raises:
        LocalProtocolError: they make no sense together, or would not be safe.
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
                raise LocalProtocolError(f"either ssl_context or {given[0]}: a context has its own")
            check_client_context(self.ssl_context, insecure=self.insecure)
        if self.keyfile is not None and self.certfile is None:
            raise LocalProtocolError("keyfile needs certfile: a key alone proves nothing")
        if self.insecure and self.cafile is not None:
            raise LocalProtocolError("insecure=True would not look at cafile: leave out one of them")

    @property
    def asks_for_tls(self) -> bool:
        """Whether any option is about TLS, so that there has to be TLS."""
        return self.insecure or any(
            value is not None
            for value in (self.ssl_context, self.cafile, self.certfile, self.server_hostname)
        )

    def layers_for(self, url: Url | None) -> Layers:
        """What to put on a stream.

        Raises:
            LocalProtocolError: TLS was asked for, and there would be none.
        """
        scheme = () if url is None else layers_of(url.scheme)
        layers = check_layers(scheme if self.layers is None else self.layers)
        if has_tls(scheme) and not has_tls(layers):
            raise LocalProtocolError(f"layers={layers!r} would take the TLS out of {url}")
        if self.asks_for_tls and not has_tls(layers):
            where = "a stream without layers" if url is None else url
            raise LocalProtocolError(
                f"{where} has no TLS, and ssl_context, cafile, certfile, server_hostname and insecure are "
                "about nothing else: dial amqps://, or name the layers, as in layers=['tls']"
            )
        if has_tls(layers) and not self.insecure and not (self.server_hostname or (url and url.host)):
            raise LocalProtocolError("say whom the peer's certificate has to name: server_hostname='...'")
        return layers

    def make_context(self) -> ssl.SSLContext:
        """The context to dial with. Raises OSError where a file is not what it should be."""
        if self.ssl_context is not None:
            return self.ssl_context
        return client_context(
            self.cafile, certfile=self.certfile, keyfile=self.keyfile, insecure=self.insecure
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DialOptions(OpenOptions, TlsOptions):
    """Options of ``open_connection``, which describes them.

    Raises:
        LocalProtocolError: they make no sense, or would not be safe.
    """

    container_id: str | None = None
    hostname: str | None = None
    sasl: SaslChoice = None
    allow_plaintext_password: bool = False
    pipelined: bool = True
    close_timeout: float = 5.0
    reconnect: bool | Backoff = False
    sole_connection: SolePolicy | None = None
    follow_redirects: bool | int = False
    trusted_hosts: Collection[str] = ()

    def __post_init__(self) -> None:
        OpenOptions.__post_init__(self)
        TlsOptions.__post_init__(self)
        if self.sole_connection is not None and self.container_id is None:
            raise LocalProtocolError("sole_connection is about a container_id: give one that is yours")

    @property
    def backoff(self) -> Backoff | None:
        """When to dial again; None for never."""
        return Backoff() if self.reconnect is True else self.reconnect or None

    def for_engine(self) -> OpenKeywords:
        """What the engine is to say and to hold to.

        Raises:
            LocalProtocolError: ``sole_connection`` is no policy.
        """
        # Senders without an address are opened later, and what was not desired may not be used (2.7.1).
        sole = () if self.sole_connection is None else (SOLE,)
        desired = tuple(dict.fromkeys((*symbols(self.desired_capabilities), *sole, ANONYMOUS_RELAY)))
        properties = {**(self.properties or {}), **sole_properties(self.sole_connection)} or None
        return {**self.keywords(), "desired_capabilities": desired, "properties": properties}


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereAndOptions(DialOptions):
    """All parameters of ``open_connection``."""

    where: str | Sequence[str] | trio.abc.Stream = field(kw_only=False, repr=False)  # may hold a password
