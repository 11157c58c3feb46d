"""The command ``amqp10 reply``, and its options."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .commands import as_target
from .dial_options import dialling
from .lazy_commands import run
from .option_types import COUNT, SECONDS

if TYPE_CHECKING:
    from .dial_options import DialOptions


@click.command("reply")
@click.argument("target", metavar="URL/ADDRESS", type=as_target)
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--count", type=COUNT, help="End after this many requests. Without it, reply until interrupted."
)
@click.option(
    "--concurrency",
    type=COUNT,
    default=1,
    show_default=True,
    help="Run at most this many commands at a time.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=SECONDS,
    default=30.0,
    show_default=True,
    help="Kill a command, and all processes that it has started, after this time.",
)
@dialling
def reply_command(target: tuple[str, str], command: tuple[str, ...], dial: DialOptions, **given: Any) -> None:
    """Answer the requests in a queue with the output of a command.

    The command gets the body on stdin; AMQP10_REQUEST_SUBJECT, AMQP10_REQUEST_MESSAGE_ID and so on have the fields, and
    AMQP10_REQUEST_PROPERTY_NAME the application property NAME. Its output goes to the reply-to of the request. If it fails, the
    reply has the application properties exit-status and error; a request without reply-to is then rejected.

    Example: amqp10 reply amqp://localhost/upper -- tr a-z A-Z
    """
    from .reply import ReplyOptions, reply

    run(partial(reply, ReplyOptions(url=target[0], address=target[1], command=command, dial=dial, **given)))
