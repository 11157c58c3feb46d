"""The transport of kombu: URLs, options, connections and events."""

from __future__ import annotations

import ssl
from contextlib import ExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from amqp import exceptions as kinds
from kombu.transport import base, virtual
from kombu.utils.compat import detect_environment

from trio_amqp10.amqp10.peer.cbs import SasTokens
from trio_amqp10.amqp10.peer.dial_options import WhereAndOptions
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.version import __version__

from .broker_channel import BrokerChannel
from .errors import kombu_errors
from .node_channel import NodeChannel
from .wire import Wire

if TYPE_CHECKING:
    from .channel import Channel
    from .window import Source

_AT_ONCE: Final = 64
"""Messages that are handed over at a time in an event loop."""
_SERVICE_BUS: Final = ".servicebus.windows.net"


class Transport(virtual.Transport):
    """Connects kombu to a peer by AMQP 1.0.

    The URL is ``amqp10://USER:PASSWORD@HOST:PORT/VHOST``. Options, in ``transport_options`` of kombu or ``broker_transport_options`` of Celery:

    ``exchanges``
        whether the peer has the exchanges of RabbitMQ 4; by default whether the product in its open is RabbitMQ.
    ``service_bus``
        whether the peer is Azure Service Bus: user and password are then the name and the value of a shared access key.
        By default whether the host is in ``servicebus.windows.net``.
    ``topics``
        whether the peer has topics, for broadcasts and events; by default yes, but for Azure Service Bus.
    ``confirm_publish``
        whether a call that publishes waits until the peer has accepted the message; by default yes. Otherwise a message
        that is not accepted is only logged, as an error.
    ``publish_timeout``
        seconds until the peer must have accepted a message, or answered; 30 by default.
    ``open_connection``
        keyword arguments for ``trio_amqp10.open_connection``, such as ``{"allow_plaintext_password": True}``.

    Other options are those of kombu. ``heartbeat`` of a connection is its ``idle_timeout``: the seconds of silence after which the peer counts as
    gone. It needs no ``heartbeat_check``.
    """

    default_port = 5672
    driver_type: str = "amqp"
    driver_name = "trio-amqp10"
    scheme = "amqp"

    connection_errors: tuple[type[Exception], ...] = (kinds.ConnectionError, OSError)
    channel_errors: tuple[type[Exception], ...] = (kinds.ChannelError, kinds.MessageNacked)
    recoverable_connection_errors: tuple[type[Exception], ...] = (kinds.RecoverableConnectionError, OSError)
    recoverable_channel_errors: tuple[type[Exception], ...] = (kinds.RecoverableChannelError,)

    implements: Any = base.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(("direct", "topic", "fanout")), heartbeats=False
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.sources: dict[Source, Channel] = {}
        self.durable: set[str] = set()
        self.topics: set[str] = set()
        self._wire: Wire | None = None
        self._has_exchanges = False
        options: dict[str, Any] = client.transport_options or {}
        hostname = str(client.hostname or "")
        self._is_service_bus = bool(options.get("service_bus", hostname.endswith(_SERVICE_BUS)))
        self.has_topics: bool = bool(options.get("topics", not self._is_service_bus))
        if not self.has_topics:
            self.driver_type = "amqp10"  # Celery broadcasts over those of type amqp
            self.implements = self.implements.extend(exchange_type=frozenset(("direct",)))

    def driver_version(self) -> str:
        """Return the version of this library."""
        return __version__

    @property
    def default_connection_params(self) -> dict[str, Any]:
        """The parts of a URL that may be left out."""
        return {"hostname": "localhost", "port": self.default_port}

    # -- a connection -----------------------------------------------------------------------------

    @property
    def wire(self) -> Wire:
        """The connection."""
        if self._wire is None:
            raise kinds.RecoverableConnectionError("this connection is closed")
        return self._wire

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._wire is not None and self._wire.is_alive

    def establish_connection(self) -> Transport:
        """Dial the peer.

        Raises:
            amqp.exceptions.AccessRefused: it does not accept the user or the password, or a password would
                travel in the clear.
            OSError: it cannot be reached. Celery and ``Connection.ensure_connection`` retry this one.
            trio_amqp10.LocalProtocolError: the URL or an option is wrong.
        """
        environment = detect_environment()
        if environment != "default":
            raise RuntimeError(
                f"the transport amqp10 does not work with {environment}: use the pool prefork, threads or solo"
            )
        with suppress(*self.connection_errors, *self.channel_errors):
            self.close_connection(self)  # one that is lost
        options = dict(self.client.transport_options or {})
        self.state.clear()
        self.durable.clear()
        self.topics.clear()
        with kombu_errors():
            wire = Wire.dial(
                WhereAndOptions(self._url(), **self._dial_options(options)), self.client.connect_timeout
            )
        wire.confirms = bool(options.get("confirm_publish", True))
        wire.seconds = float(options.get("publish_timeout", wire.seconds))
        if self._is_service_bus and self.client.userid:
            wire.tokens = SasTokens(self.client.userid, self._password())
            wire.namespace = f"sb://{self.client.hostname}"
        wire.marks_first = not self._is_service_bus
        product = str(wire.properties.get("product", ""))
        self._has_exchanges = bool(options.get("exchanges", product == "RabbitMQ"))
        self._wire = wire
        return self

    def _url(self) -> str:
        client = self.client
        host = client.hostname or "localhost"
        if ":" in host:
            host = f"[{host}]"
        login = ""
        if client.userid and not self._is_service_bus:
            login = f"{quote(client.userid, '')}:{quote(self._password(), '')}@"
        scheme = "amqps" if client.ssl else self.scheme
        return f"{scheme}://{login}{host}:{client.port or self.default_port}"

    def _password(self) -> str:
        password = self.client.password
        return str((password() if callable(password) else password) or "")

    def _dial_options(self, options: dict[str, Any]) -> dict[str, Any]:
        given = dict(options.get("open_connection") or {})
        virtual_host = self.client.virtual_host
        if virtual_host and virtual_host != "/":
            given.setdefault("hostname", f"vhost:{virtual_host}")
        if self.client.heartbeat:
            given.setdefault("idle_timeout", float(self.client.heartbeat))
        tls: Any = self.client.ssl
        if tls and tls is not True:
            given.setdefault("ssl_context", _context(tls))
        return given

    def create_channel(self, connection: Transport) -> Channel:
        """Return a new channel."""
        channel = (BrokerChannel if self._has_exchanges else NodeChannel)(connection)
        self.channels.append(channel)
        return channel

    def close_connection(self, connection: Transport) -> None:
        """Close the channels and the connection."""
        wire = self._wire
        if wire is None:
            return
        channels = tuple(self.channels)
        with kombu_errors(), ExitStack() as closing:  # the last callback is called first, and all are called
            closing.callback(self._forget)
            for channel in channels:
                closing.callback(channel.close)
            closing.callback(wire.close)  # with all links: to close each would take as many round trips
            for channel in channels:
                closing.callback(channel.give_back)

    def _forget(self) -> None:
        self._wire = None
        self.channels.clear()
        self.sources.clear()

    def verify_connection(self, connection: Transport) -> bool:
        """Whether there is a connection, or consumers that do not know of its loss.

        kombu replaces any other silently; such consumers would wait for ever.
        """
        if self._wire is None or self._wire.is_alive or self._wire.is_loss_known:
            return self.connected
        return any(channel.is_consuming for channel in self.channels)

    def qos_semantics_matches_spec(self, connection: Transport) -> bool:
        """Return False, as for RabbitMQ.

        Celery then asks for one window for all consumers of a channel.
        """
        return False

    # -- events -----------------------------------------------------------------------------------

    def drain_events(self, connection: Transport, timeout: float | None = None, **_: Any) -> None:
        """Wait for a message, and call its consumer.

        Raises:
            TimeoutError: none came within ``timeout`` seconds.
            amqp.exceptions.RecoverableConnectionError, ...: the connection is lost, or a consumer's link.
        """
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            # A message that is not for a consumer, such as one that no binding wants, does not end the wait.
            left = None if deadline is None else max(0.0, deadline - monotonic())
            with kombu_errors():
                arrived = self.wire.next_arrival(left)
            if arrived is None:
                raise TimeoutError("timed out")
            channel = self.sources.get(arrived[0])
            if channel is not None and channel.take(*arrived):
                return

    def return_waiting(self, channel: Channel) -> None:
        """Release what has come for a channel that is closing."""
        wire = self.wire
        for _ in range(wire.waiting()):
            arrived = wire.next_arrival(0)
            if arrived is None:
                return
            if self.sources.get(arrived[0]) is channel:
                channel.take(*arrived)
            else:
                wire.put_back(*arrived)

    def register_with_event_loop(self, connection: Transport, loop: Any) -> None:
        """Let an event loop call ``on_readable`` while messages wait."""
        loop.add_reader(self.wire.fileno(), self.on_readable, connection, loop)

    def unregister_from_event_loop(self, connection: Transport, loop: Any) -> None:
        """Undo ``register_with_event_loop``."""
        if self._wire is not None:
            loop.remove_reader(self._wire.fileno())

    def on_readable(self, connection: Transport, loop: Any) -> None:
        """Call the consumers of some messages that wait."""
        wire = self.wire
        wire.quiet()
        try:
            for _ in range(_AT_ONCE):
                self.drain_events(connection, timeout=0)
        except TimeoutError:
            pass
        finally:
            wire.signal_if_waiting()


class SecureTransport(Transport):
    """The same with TLS: ``amqp10s://``."""

    default_port = 5671
    scheme = "amqps"


def _context(given: dict[str, Any]) -> ssl.SSLContext:
    """Return a TLS context for ``broker_use_ssl`` of Celery."""
    known = ("keyfile", "certfile", "password", "ca_certs", "cert_reqs", "server_hostname")
    names = {str(name).removeprefix("ssl_"): value for name, value in given.items()}
    unknown = names.keys() - set(known)
    if unknown:
        raise LocalProtocolError(f"ssl has {sorted(unknown)}: expected {', '.join(known)}")
    context = ssl.create_default_context(cafile=names.get("ca_certs"))
    if names.get("certfile"):
        context.load_cert_chain(names["certfile"], names.get("keyfile"), names.get("password"))
    if names.get("cert_reqs") in (ssl.CERT_NONE, "none", "CERT_NONE"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
