from collections.abc import Mapping
from typing import Any

def to_rabbitmq_queue_arguments(arguments: Mapping[str, Any], **options: Any) -> Any: ...

class Message:
    body: Any
    channel: Any
    delivery_tag: Any
    content_type: str | None
    content_encoding: str | None
    delivery_info: dict[str, Any]
    headers: dict[str, Any]
    properties: dict[str, Any]
    def __init__(self, body: Any = ..., **fields: Any) -> None: ...

class Implements(dict[str, Any]):
    def extend(self, **more: Any) -> Implements: ...

class Transport:
    implements: Implements
