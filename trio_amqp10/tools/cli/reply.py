"""``amqp10 reply``: answer requests with the output of a command.

A request is settled after its reply is sent, so a request comes again if this program ends before. Each command has a process group
of its own, which is killed at the time limit.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.json_values import to_json
from trio_amqp10.amqp10.wire.values import Int
from trio_amqp10.core.errors import RemoteProtocolError

from .command_runner import CommandError, Interrupts, say
from .dial_options import DialOptions
from .message_text import as_line, body_octets

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST: Final = 64 * 1024 * 1024
"""The most octets of an output; a command with more is killed."""

_FIELDS: Final = (
    "subject",
    "message_id",
    "correlation_id",
    "reply_to",
    "content_type",
    "content_encoding",
    "group_id",
    "to",
    "priority",
    "delivery_count",
)
_PREFIX: Final = "AMQP10_REQUEST_"
_GROUP: Final[dict[str, Any]] = {} if sys.platform == "win32" else {"start_new_session": True}
_SECRET: Final = "AMQP10_PASSWORD"


@dataclass(frozen=True, kw_only=True)
class ReplyOptions:
    """The options of ``amqp10 reply``."""

    url: str
    address: str
    command: Sequence[str]
    count: int | None = None
    concurrency: int = 1
    timeout: float = 30.0
    dial: DialOptions = field(default_factory=DialOptions)


class _Result(NamedTuple):
    """The output of a command and, if it has failed, its status and why."""

    output: bytes
    status: int = 0
    error: str | None = None


async def reply(options: ReplyOptions, interrupts: Interrupts) -> None:
    """Answer requests, ``count`` of them or until interrupted.

    An interrupt kills the commands that run; their requests go back to the queue.

    Raises:
        CommandError: interrupted before ``count`` requests were answered.
    """
    answered = 0
    async with (
        options.dial.dial(options.url) as connection,
        connection.open_receiver(options.address, credit=0) as receiver,
    ):
        with interrupts.here() as scope:
            answered = await _reply_all(options, connection, receiver)
    if scope.cancelled_caught and options.count is not None and answered < options.count:
        raise CommandError("interrupted", 130)


async def _reply_all(options: ReplyOptions, connection: amqp.Connection, receiver: amqp.Receiver) -> int:
    """Answer requests until there are enough; return their number."""
    free = trio.Semaphore(options.concurrency)
    taken = 0
    async with trio.open_nursery() as nursery:
        while options.count is None or taken < options.count:
            await free.acquire()
            receiver.grant(1)
            delivery = await receiver.receive()
            taken += 1
            nursery.start_soon(_answer_and_release, options, connection, delivery, free)
    return taken


async def _answer_and_release(
    options: ReplyOptions, connection: amqp.Connection, delivery: amqp.Delivery, free: trio.Semaphore
) -> None:
    try:
        await _answer(options, connection, delivery)
    except trio.Cancelled:
        if not delivery.settled:
            delivery.release()
        raise
    finally:
        free.release()


async def _answer(options: ReplyOptions, connection: amqp.Connection, delivery: amqp.Delivery) -> None:
    request = delivery.message
    try:
        body, environment = body_octets(request), _environment(request)
        reply_to, asked = request.reply_to, request.correlation_id
        asked = request.message_id if asked is None else asked
    except RemoteProtocolError as failure:
        say(f"amqp10: a request that cannot be decoded is rejected: {failure.description}")
        delivery.reject(failure.condition, failure.description)
        return
    result = await _run(options, body, environment)
    if result.error is not None:
        say(f"amqp10: {options.command[0]}: {result.error}")
    if reply_to is None:
        if result.error is None:
            delivery.accept()
        else:
            delivery.reject("amqp:internal-error", result.error)
        return
    properties = None if result.error is None else {"exit-status": Int(result.status), "error": result.error}
    answer = amqp.Message(result.output, correlation_id=asked, application_properties=properties)
    try:
        async with connection.open_sender(reply_to) as sender:
            await sender.send(answer)
    except (amqp.LinkDetachedError, amqp.DeliveryError) as failure:  # the requester has gone
        say(f"amqp10: the reply could not be sent to {reply_to!r}: {failure}")
    delivery.accept()


def _environment(request: amqp.Message) -> dict[str, str]:
    """Return the environment of the command: ours, and the request's fields.

    The password is left out.
    """
    found = {name: value for name, value in os.environ.items() if name != _SECRET}
    for name in _FIELDS:
        found |= _variable(name.upper(), getattr(request, name))
    for name, value in request.application_properties.items():
        found |= _variable(f"PROPERTY_{re.sub(r'[^A-Za-z0-9_]', '_', name)}", value)
    return found


def _variable(name: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, bytes):
        text = os.fsdecode(value)
    else:
        text = str(value) if isinstance(value, str) else as_line(to_json(value)).decode(errors="replace")
    return {} if "\0" in text else {_PREFIX + name: text}  # a variable cannot have one


async def _run(options: ReplyOptions, body: bytes, environment: dict[str, str]) -> _Result:
    """Run the command, and return what it has done."""
    try:
        process = await trio.lowlevel.open_process(
            list(options.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            **_GROUP,
        )
    except (OSError, ValueError) as failure:
        return _Result(b"", 127, f"it cannot be started: {getattr(failure, 'strerror', None) or failure}")
    output = bytearray()
    with trio.move_on_after(options.timeout) as limit:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, process, body)
                too_much = await _read(process, output)
                if too_much:
                    nursery.cancel_scope.cancel()
                else:
                    await process.wait()
        finally:
            with trio.CancelScope(shield=True):
                if process.returncode is None or limit.cancel_called:
                    _kill(process)
                await process.wait()
                for stream in (process.stdin, process.stdout):
                    if stream is not None:
                        await trio.aclose_forcefully(stream)
    if limit.cancelled_caught:
        return _Result(b"", 124, f"it was killed after {options.timeout:g} s, the time limit")
    if len(output) > _MOST:
        return _Result(b"", 125, f"it was killed: its output has more than {_MOST} octets")
    status = process.returncode or 0
    if status < 0:
        return _Result(bytes(output), 128 - status, f"it was ended by signal {-status}")
    return _Result(bytes(output), status, f"it ended with exit status {status}" if status else None)


def _kill(process: trio.Process) -> None:
    """Kill a command and what it has started."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _feed(process: trio.Process, body: bytes) -> None:
    assert process.stdin is not None
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # the command does not read it all
        await process.stdin.send_all(body)
    await process.stdin.aclose()


async def _read(process: trio.Process, output: bytearray) -> bool:
    """Read the output to its end; return True if it is too long."""
    assert process.stdout is not None
    async for piece in process.stdout:
        output += piece
        if len(output) > _MOST:
            return True
    return False
