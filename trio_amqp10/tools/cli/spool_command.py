"""The command ``amqp10 spool``, and its options."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from .commands import as_pair, as_target
from .dial_options import dialling
from .lazy_commands import run

if TYPE_CHECKING:
    from .dial_options import DialOptions


@click.command("spool")
@click.argument("target", metavar="URL/ADDRESS", type=as_target)
@click.option(
    "--to",
    "where",
    metavar="FOLDER-OR-URI",
    required=True,
    help="Write to this spool, which Spark reads: a folder, or a URI that pyarrow supports, as in s3://bucket/orders?region=eu-west-1.",
)
@click.option(
    "--lane",
    metavar="NAME",
    required=True,
    help="Write to the lane of this name. A lane has one receiver at a time, so give each pod its own name.",
)
@click.option(
    "--filter", "selector", metavar="SELECTOR", help="Receive only messages that match this JMS selector."
)
@click.option(
    "--option",
    "given",
    metavar="NAME=VALUE",
    type=as_pair,
    multiple=True,
    help="Set this option of the Spark source about receiving, as in dedup=message-id or spool.maxBytes=4g. May be repeated.",
)
@click.option("--until-empty", is_flag=True, help="End when the queue is empty.")
@dialling
def spool_command(target: tuple[str, str], dial: DialOptions, **parameters: Any) -> None:
    """Receive from a queue into the spool of a Spark query.

    The query needs the options spool=FOLDER-OR-URI and lanes=external; it may run on another machine. A message is accepted
    after it is stored. Prints "spooling LANE/EPOCH" when it begins. On SIGTERM or Ctrl-C, stores and accepts the messages that
    have arrived, prints "spooled N", and ends.
    """
    if dial.insecure:
        raise click.UsageError(
            "--insecure cannot be used here, because spool removes messages from a queue: give --tls-ca."
        )
    if find_spec("pyarrow") is None:
        raise click.UsageError(
            "amqp10 spool needs pyarrow: install it with pip install 'trio-amqp10[spool]'."
        )
    from .spool import SpoolOptions, spool

    given = dict(parameters.pop("given"))
    options = SpoolOptions(url=target[0], address=target[1], given=given, dial=dial, **parameters)
    run(partial(spool, options))
