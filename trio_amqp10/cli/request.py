"""``amqp10 request``: ask a node, print the reply."""

from __future__ import annotations

from dataclasses import dataclass, field

import trio

import trio_amqp10 as amqp

from .command_runner import CommandError, Interrupts, write_out
from .dial_options import DialOptions
from .message_text import body_octets, message_json

__all__ = ["RequestOptions", "request"]


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """What the command line said."""

    url: str
    address: str
    body: str
    timeout: float
    json: bool
    dial: DialOptions = field(default_factory=DialOptions)


async def request(options: RequestOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Send the request and print the reply.

    Raises:
        CommandError: none came in time.
    """
    async with (
        options.dial.dial(options.url) as connection,
        amqp.open_requester(connection, options.address) as requester,
    ):
        try:
            with trio.fail_after(options.timeout):
                reply = await requester.request(options.body)
        except trio.TooSlowError:
            raise CommandError(
                f"no reply came within {options.timeout:g} s: something has to answer at {options.address!r}, as a function of a "
                "container; a queue only keeps the request"
            ) from None
    await write_out((message_json if options.json else body_octets)(reply) + b"\n")
