"""What each service takes: queues, topics and peers (RFC 006, 2.2.6, 3.5).

A server closes a handle that breaks these rules; a client refuses to write what would break them. Knows no state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from trio_amqp10.reply_codes import ReplyCodeRfc011

from . import spec
from .faults import Level, ReplyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .commands import Command

__all__ = ["TAKEN", "Service", "check", "check_fragment", "check_open"]


class Service(IntEnum):
    """The service types (3.5.2.1)."""

    QUEUE = 1
    TOPIC = 2
    PEER = 3


_EVERYWHERE: Final = frozenset({spec.HandleSend, spec.HandlePrepare, spec.HandleReady, spec.HandleClose})
_STORED: Final = _EVERYWHERE | {
    spec.HandleConsume,
    spec.HandleFlow,
    spec.HandleQuery,
    spec.HandleBrowse,
}

TAKEN: Final[Mapping[Service, frozenset[type[Command]]]] = {
    Service.QUEUE: _STORED | {spec.HandleUnget},
    Service.TOPIC: _STORED | {spec.HandleCancel},
    Service.PEER: _EVERYWHERE,
}
"""Commands of a client that each service takes."""

_ACCESS: Final[Mapping[type[Command], str]] = {
    spec.HandleSend: "producer",
    spec.HandlePrepare: "producer",
    spec.HandleConsume: "consumer",
    spec.HandleFlow: "consumer",
    spec.HandleUnget: "consumer",
    spec.HandleQuery: "browser",
    spec.HandleBrowse: "browser",
}
"""Which access each command of a client needs, on queues and topics."""

_R = ReplyCodeRfc011


def _wrong(code: ReplyCodeRfc011, explanation: str) -> ReplyError:
    return ReplyError(code, explanation, Level.HANDLE)


def check_open(command: spec.HandleOpen) -> None:
    """Raise ``ReplyError`` if there is no such service, or it does not have the access that is asked for (3.5.2)."""
    if command.service_type not in Service.__members__.values():
        raise _wrong(_R.SERVICE_TYPE_NOT_VALID, f"service-type {command.service_type}")
    bits = command.producer or command.consumer or command.browser or command.temporary
    if command.service_type == Service.PEER and bits:
        raise _wrong(
            _R.COMMAND_NOT_VALID, "a peer service has no producer, consumer, browser or temporary access"
        )


def check(opened: spec.HandleOpen, command: Command) -> None:
    """Raise ``ReplyError`` if the service of a handle does not take this command of a client.

    Args:
        opened: the command that opened the handle.
        command: the command.
    """
    service = Service(opened.service_type)
    if type(command) not in TAKEN[service]:
        raise _wrong(_R.COMMAND_NOT_VALID, f"{command.plan.name} at a {service.name.lower()}")
    access = _ACCESS.get(type(command))
    if service is not Service.PEER and access is not None and not getattr(opened, access):
        raise _wrong(_R.ACCESS_REFUSED, f"{command.plan.name} on a handle without {access} access")
    if isinstance(command, spec.HandleConsume):
        _check_consume(opened, command)
    elif isinstance(command, spec.HandleCancel) and not command.identifier:
        raise _wrong(_R.SYNTAX_ERROR, "identifier: empty")
    elif isinstance(command, spec.HandleSend):
        check_fragment(opened, command)


def _check_consume(opened: spec.HandleOpen, command: spec.HandleConsume) -> None:
    if not command.prefetch:
        raise _wrong(_R.SYNTAX_ERROR, "prefetch: 0, where 1 is the least")
    if opened.service_type != Service.TOPIC and (command.identifier or command.no_local):
        raise _wrong(_R.COMMAND_NOT_VALID, "identifier and no-local are for topics alone")
    if command.identifier and opened.temporary:
        raise _wrong(_R.NOT_IMPLEMENTED, "a durable subscription on a temporary topic")


def check_fragment(opened: spec.HandleOpen, command: spec.HandleSend | spec.HandleNotify) -> None:
    """Raise ``ReplyError`` if a fragment comes in a way that there is not (3.5.3, 3.5.11)."""
    if command.out_of_band:
        raise _wrong(_R.NOT_IMPLEMENTED, "out-of-band: messages come on the connection")
    if not command.streaming:
        return
    if opened.service_type != Service.PEER:
        raise _wrong(_R.NOT_IMPLEMENTED, "streaming: only peer services have it")
    if command.recovery or not command.partial:
        raise _wrong(_R.SYNTAX_ERROR, "streaming: goes with partial, and not with recovery")
