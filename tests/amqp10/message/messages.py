"""A message with everything, and the general ways to read and write one."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trio_amqp10.amqp10.message import message as message_module
from trio_amqp10.amqp10.message import sections
from trio_amqp10.amqp10.message.readers_shortcut import USUAL_READERS
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL: dict[str, Any] = {
    "body": bytes(100),
    "durable": True,
    "message_id": 70_000,
    "to": "orders/eu",
    "subject": "order.created",
    "reply_to": "replies/42",
    "correlation_id": "c-70000",
    "content_type": "application/json",
    "application_properties": {"n": 70_000, "region": "eu-west", "flag": True},
}


@contextmanager
def general() -> Iterator[None]:
    """Without any short way."""

    def nothing(*_: Any) -> None:
        return None

    with ExitStack() as stack:
        for module, name, value in (
            (sections, "USUAL_READERS", (nothing,) * len(USUAL_READERS)),
            (sections, "_usual_spans", nothing),
            (message_module, "USUAL_READERS", (nothing,) * len(USUAL_READERS)),
            (message_module, "short_body", nothing),
            (message_module, "usual_payload", nothing),
        ):
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def tried(get: Any) -> Any:
    """What a call gives, or what is wrong in its words."""
    try:
        return get()
    except RemoteProtocolError as error:
        return ("fault", error.description, error.condition, error.scope, error.rule)
    except LocalProtocolError as error:
        return ("refused", str(error))
