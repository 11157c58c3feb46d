"""The command ``amqp10 migrate``, and its options.

Knows click; the package ``migrate`` does the work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .dial_options import completed, dialling
from .lazy_commands import run
from .option_types import FILE
from .target_arguments import management_place

if TYPE_CHECKING:
    from .dial_options import DialOptions


@click.command("migrate")
@click.argument("from_url", metavar="FROM", type=management_place)
@click.argument("to_url", metavar="TO", type=management_place)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    help="Migrate only this queue, with the exchanges that lead to it. May be repeated.",
)
@click.option(
    "--definitions",
    metavar="FILE",
    type=FILE,
    help="The definitions of RabbitMQ, which does not list its queues over AMQP 1.0; as rabbitmqctl export_definitions writes them.",
)
@click.option(
    "--virtual-host",
    metavar="NAME",
    help="Of --definitions, take those of this virtual host.  [default: the only one, or /]",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option("--accept-differences", is_flag=True, help="Go on although something has no counterpart at TO.")
@click.option(
    "--redirect",
    is_flag=True,
    help="When a queue of a container is empty, send its producers and consumers to TO (amqp:link:redirect).",
)
@dialling
def migrate_command(
    from_url: str, to_url: str, queues: tuple[str, ...], dial: DialOptions, **given: Any
) -> None:
    """Take queues, exchanges, bindings and messages of one broker to another.

    FROM and TO are URLs of a container with $management and of RabbitMQ 4, or of two containers. What has no counterpart at TO is
    listed first, and then nothing is done without --accept-differences.

    Each message is moved exactly once, in order, also if this command is killed or loses a connection: run it again. Ctrl-C loses
    nothing. The queues at TO must have no consumers meanwhile. Prints "moved N of QUEUE" for each queue.
    """
    from .migrate.command import MigrateOptions, migrate

    options = MigrateOptions(
        source=from_url,
        target=to_url,
        queues=queues,
        source_dial=completed(dial, from_url),
        target_dial=completed(dial, to_url),
        **given,
    )
    run(partial(migrate, options))
