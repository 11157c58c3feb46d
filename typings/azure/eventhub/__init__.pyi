# What the example needs of azure-eventhub.

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

class EventData:
    def __init__(self, body: str | bytes | None = None) -> None: ...
    def body_as_str(self, encoding: str = "UTF-8") -> str: ...

class EventHubProducerClient:
    @classmethod
    def from_connection_string(cls, conn_str: str, *, eventhub_name: str | None = None) -> Self: ...
    def send_batch(
        self,
        event_data_batch: Iterable[EventData],
        *,
        partition_id: str | None = None,
        partition_key: str | None = None,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class EventHubConsumerClient:
    @classmethod
    def from_connection_string(
        cls, conn_str: str, consumer_group: str, *, eventhub_name: str | None = None
    ) -> Self: ...
    def receive(
        self,
        on_event: Callable[[Any, EventData], object],
        *,
        starting_position: str | int | None = None,
    ) -> None: ...
    def close(self) -> None: ...
