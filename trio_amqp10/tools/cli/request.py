"""``amqp10 request``: send a request to a node, and print the reply."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import trio

import trio_amqp10 as amqp

from .command_runner import CommandError, Interrupts, say, write_out
from .dial_options import DialOptions
from .message_text import body_octets, message_json


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """The options of ``amqp10 request``."""

    url: str
    address: str
    body: str | None
    timeout: float
    json: bool
    dial: DialOptions = field(default_factory=DialOptions)


async def request(options: RequestOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Send the request and print the reply.

    Raises:
        CommandError: no reply arrived in time.
    """
    body = await body_of(options)
    async with (
        options.dial.dial(options.url) as connection,
        amqp.open_requester(connection, options.address) as requester,
    ):
        try:
            with trio.fail_after(options.timeout):
                reply = await requester.request(body)
        except trio.TooSlowError:
            raise CommandError(
                f"no reply arrived within {options.timeout:g} s: at {options.address!r} there must be a service that replies, as a "
                "function of a container; a queue only stores the request"
            ) from None
    await write_out((message_json if options.json else body_octets)(reply) + b"\n")


async def body_of(options: RequestOptions) -> str:
    """Return the body of the request, from the options or from stdin.

    Stdin is read to its end, and its last newline is removed.

    Raises:
        CommandError: stdin is not UTF-8.
    """
    if options.body is not None:
        return options.body
    if sys.stdin.isatty():
        say("amqp10: type the request; Ctrl-D at the beginning of a line ends")
    octets: bytes = await trio.to_thread.run_sync(sys.stdin.buffer.read, abandon_on_cancel=True)
    try:
        return octets.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError as fault:
        raise CommandError(f"stdin is not UTF-8: {fault}: a request is a text") from None
