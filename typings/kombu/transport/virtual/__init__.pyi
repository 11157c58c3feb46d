from typing import Any

from kombu.transport.base import Implements

class BrokerState:
    exchanges: dict[str, Any]
    def clear(self) -> None: ...
    def queue_bindings(self, queue: str) -> Any: ...

class Channel:
    Message: Any
    body_encoding: str | None
    supports_fanout: bool
    do_restore: bool
    from_transport_options: tuple[str, ...]
    connection: Any
    closed: bool
    @property
    def state(self) -> BrokerState: ...
    no_ack_consumers: set[str]
    _consumers: set[str]
    _tag_to_queue: dict[str, str]
    def __init__(self, connection: Any, **kwargs: Any) -> None: ...
    def typeof(self, exchange: str, default: str = ...) -> Any: ...
    def exchange_declare(self, exchange: str | None = ..., type: str = ..., **options: Any) -> None: ...
    def queue_declare(self, queue: str | None = ..., passive: bool = ..., **options: Any) -> Any: ...
    def queue_bind(
        self,
        queue: str,
        exchange: str | None = ...,
        routing_key: str = ...,
        arguments: Any = ...,
        **options: Any,
    ) -> None: ...
    def queue_unbind(
        self,
        queue: str,
        exchange: str | None = ...,
        routing_key: str = ...,
        arguments: Any = ...,
        **options: Any,
    ) -> None: ...

class Transport:
    default_port: int
    driver_type: str
    driver_name: str
    connection_errors: tuple[type[Exception], ...]
    channel_errors: tuple[type[Exception], ...]
    recoverable_connection_errors: tuple[type[Exception], ...]
    recoverable_channel_errors: tuple[type[Exception], ...]
    implements: Implements
    client: Any
    state: BrokerState
    channels: list[Any]
    def __init__(self, client: Any, **kwargs: Any) -> None: ...
