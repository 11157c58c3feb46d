"""The command ``amqp10 spool``, and its options."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from .commands import as_pair, as_target
from .dial_options import dialling
from .lazy_commands import run

if TYPE_CHECKING:
    from .dial_options import DialOptions

__all__ = ["spool_command"]


@click.command("spool")
@click.argument("target", metavar="URL/ADDRESS", type=as_target)
@click.option(
    "--to",
    "where",
    metavar="FOLDER-OR-URI",
    required=True,
    help="The spool that Spark reads: a folder, or a URI that pyarrow supports, as in s3://bucket/orders?region=eu-west-1.",
)
@click.option(
    "--lane",
    metavar="NAME",
    required=True,
    help="The name of the lane. Each lane has one receiver at a time, so give each pod its own name.",
)
@click.option(
    "--filter", "selector", metavar="SELECTOR", help="Only messages for which this selector of JMS is true."
)
@click.option(
    "--option",
    "given",
    metavar="NAME=VALUE",
    type=as_pair,
    multiple=True,
    help="An option of the Spark source that concerns receiving, as in dedup=message-id or spool.maxBytes=4g. May be repeated.",
)
@click.option("--until-empty", is_flag=True, help="Receive the messages that are in the queue, then end.")
@dialling
def spool_command(
    target: tuple[str, str],
    where: str,
    lane: str,
    selector: str | None,
    given: tuple[tuple[str, str], ...],
    until_empty: bool,
    dial: DialOptions,
) -> None:
    """Receive from a queue for a Spark query that reads elsewhere, and accept what is stored.

    The query has the options spool=FOLDER-OR-URI and lanes=external. Prints "spooling LANE/EPOCH" when it begins, and "spooled N" at the end: on
    SIGTERM or Ctrl-C, when what has come is stored and accepted.
    """
    if dial.insecure:
        raise click.UsageError("--insecure is not for messages that are taken off a queue: give --tls-ca.")
    if find_spec("pyarrow") is None:
        raise click.UsageError("This needs pyarrow; install it with: pip install 'trio-amqp10[spool]'")
    from .spool import SpoolOptions, spool

    options = SpoolOptions(
        url=target[0],
        address=target[1],
        where=where,
        lane=lane,
        selector=selector,
        given=dict(given),
        until_empty=until_empty,
        dial=dial,
    )
    run(partial(spool, options))
