"""The options of ``open_connection`` that 0-9-1 and 10.3 share.

Each option is declared once, with its effective value for one URL. Each ``dial`` module adds the options of its
version.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import trio

from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.version import __version__
from trio_amqp10.net.dial_options import CommonDialOptions
from trio_amqp10.net.tls_options import TlsOptions

from .urls import Place, parse_place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio_amqp10.sasl import ClientMechanism

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | None"


@dataclass(frozen=True, kw_only=True)
class DialOptions(TlsOptions, CommonDialOptions):
    """Parameters of ``open_connection``, which documents them.

    Attributes:
        protocol: the first part of the schemes of its URLs.

    Raises:
        LocalProtocolError: the options are contradictory or not safe.
    """

    protocol: ClassVar[str] = "amqp091"

    where: str | Sequence[str] | trio.abc.Stream = field(kw_only=False, repr=False)  # may contain a password
    vhost: str | None = None
    login: tuple[str, str] | None = field(default=None, repr=False)
    sasl: SaslChoice = None
    heartbeat: int | None = None
    frame_max: int | None = None
    channel_max: int | None = None
    connection_name: str | None = None
    client_properties: Mapping[str, Any] | None = None
    limits: Limits | None = None

    @property
    def stream(self) -> trio.abc.Stream | None:
        """The stream that is already connected; None if there are URLs to dial."""
        return self.where if isinstance(self.where, trio.abc.Stream) else None

    def places(self) -> Sequence[Place]:
        """Return the places to dial, in order. Raises LocalProtocolError for a bad URL."""
        if isinstance(self.where, trio.abc.Stream):
            return ()
        urls = (self.where,) if isinstance(self.where, str) else self.where
        return [parse_place(url, self.protocol) for url in urls]

    def properties(self) -> dict[str, Any]:
        """Return the client properties: product, version, platform and the program's own."""
        return {
            "product": "trio-amqp10",
            "version": __version__,
            "platform": f"{platform.python_implementation()} {platform.python_version()}",
            **({} if self.connection_name is None else {"connection_name": self.connection_name}),
            **(self.client_properties or {}),
        }

    def limits_at(self, place: Place | None) -> Limits:
        """Return the limits for one place: arguments override the options of its URL.

        Raises:
            LocalProtocolError: a number is out of its range.
        """
        numbers = {} if place is None else dict(place.numbers)
        timeout = numbers.pop("connection_timeout", None)
        given = {name: getattr(self, name) for name in ("heartbeat", "frame_max", "channel_max")}
        numbers |= {name: value for name, value in given.items() if value is not None}
        try:
            limits = replace(self.limits or Limits(), **numbers)  # type: ignore[arg-type]
        except ValueError as error:
            raise LocalProtocolError(str(error)) from None
        return limits if timeout is None else replace(limits, handshake_timeout=timeout / 1000)

    def virtual_host_at(self, place: Place | None) -> str:
        """Return the virtual host: the argument if there is one, or that of the URL."""
        return self.vhost or ("/" if place is None else place.virtual_host)

    def tls_at(self, place: Place | None) -> TlsOptions:
        """Return the TLS options: arguments override the options of the URL."""
        words = {} if place is None else place.words
        if not words or self.ssl_context is not None:
            return self
        return replace(
            self,
            cafile=self.cafile or words.get("cacertfile"),
            certfile=self.certfile or words.get("certfile"),
            keyfile=self.keyfile or words.get("keyfile"),
            server_hostname=self.server_hostname or words.get("server_name_indication"),
        )
