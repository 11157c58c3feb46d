"""The commands that queues, topics and peer services take (RFC 006, 2.2.6, 3.5).

A server closes a handle whose client breaks these rules; a client refuses to write a command that breaks them. This module has no
state.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp_fast.wire.commands import Command


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
"""The commands of a client that each service takes."""

_ACCESS: Final[Mapping[type[Command], str]] = {
    spec.HandleSend: "producer",
    spec.HandlePrepare: "producer",
    spec.HandleConsume: "consumer",
    spec.HandleFlow: "consumer",
    spec.HandleUnget: "consumer",
    spec.HandleQuery: "browser",
    spec.HandleBrowse: "browser",
}
"""The access that each command of a client needs, on queues and topics."""

_R = ReplyCodeRfc011


def _wrong(code: ReplyCodeRfc011, explanation: str) -> ReplyError:
    return ReplyError(code, explanation, Level.HANDLE)


def check_open(command: spec.HandleOpen) -> None:
    """Check that the service exists and offers the access that is asked for (3.5.2).

    Raises:
        ReplyError: for the handle.
    """
    if command.service_type not in Service.__members__.values():
        raise _wrong(
            _R.SERVICE_TYPE_NOT_VALID,
            f"service-type {command.service_type} is unknown: use 1 (queue), 2 (topic) or 3 (peer)",
        )
    bits = command.producer or command.consumer or command.browser or command.temporary
    if command.service_type == Service.PEER and bits:
        raise _wrong(
            _R.COMMAND_NOT_VALID, "a peer service has no producer, consumer, browser or temporary access"
        )


def check(opened: spec.HandleOpen, command: Command) -> None:
    """Raise ``ReplyError`` if the service of a handle does not take this command.

    Args:
        opened: the command that opened the handle.
        command: the client's command to check.
    """
    service = Service(opened.service_type)
    if type(command) not in TAKEN[service]:
        raise _wrong(_R.COMMAND_NOT_VALID, f"a {service.name.lower()} does not support {command.plan.name}")
    access = _ACCESS.get(type(command))
    if service is not Service.PEER and access is not None and not getattr(opened, access):
        raise _wrong(
            _R.ACCESS_REFUSED, f"{command.plan.name} needs {access} access, which the handle does not have"
        )
    if isinstance(command, spec.HandleConsume):
        _check_consume(opened, command)
    elif isinstance(command, spec.HandleCancel) and not command.identifier:
        raise _wrong(_R.SYNTAX_ERROR, "identifier: must not be empty")
    elif isinstance(command, spec.HandleSend):
        check_fragment(opened, command)


def _check_consume(opened: spec.HandleOpen, command: spec.HandleConsume) -> None:
    if not command.prefetch:
        raise _wrong(_R.SYNTAX_ERROR, "prefetch: must be at least 1, not 0")
    if opened.service_type != Service.TOPIC and (command.identifier or command.no_local):
        raise _wrong(_R.COMMAND_NOT_VALID, "identifier and no-local are only allowed on topics")
    if command.identifier and opened.temporary:
        raise _wrong(_R.NOT_IMPLEMENTED, "durable subscriptions to temporary topics are not supported")


def check_fragment(opened: spec.HandleOpen, command: spec.HandleSend | spec.HandleNotify) -> None:
    """Raise ``ReplyError`` if a fragment uses a way of transfer that is not supported.

    Out-of-band transfer is not implemented; streams exist only on peer services (3.5.3, 3.5.11).
    """
    if command.out_of_band:
        raise _wrong(_R.NOT_IMPLEMENTED, "out-of-band: not supported, send messages on the connection")
    if not command.streaming:
        return
    if opened.service_type != Service.PEER:
        raise _wrong(_R.NOT_IMPLEMENTED, "streaming: only supported on peer services")
    if command.recovery or not command.partial:
        raise _wrong(_R.SYNTAX_ERROR, "streaming: requires partial, and excludes recovery")
