"""The command ``amqp10 serve``: its options, and its file of configuration.

What the command line gives replaces the key of the file. Knows click.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.urls import hide_login

from .command_runner import CommandError, explain, run_plain, say
from .lazy_commands import RulesCommand, run
from .option_types import FILE
from .serve_options import SERVE_OPTIONS, read_config, with_serve_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .serve import ServeOptions


@click.command("serve", cls=RulesCommand, context_settings={"allow_extra_args": True})
@click.option(
    "--config",
    metavar="FILE",
    type=FILE,
    help="Read the options that are not given here from this file of TOML. Read again on SIGHUP.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Report what is wrong with the options and the files that they name, warn as a start does, and end.",
)
@with_serve_options
def serve_command(config: str | None, check: bool, **given: Any) -> None:
    """Run a container of queues and topics, in memory, or in a file with --store.

    Prints "listening URL" when a listener is ready. On SIGTERM or SIGINT, the container finishes the
    deliveries in flight, for at most 5 seconds, and ends.

    Example: amqp10 serve --config broker.toml --check
    """
    hangups: list[int] = []
    if config is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda number, _: hangups.append(number))  # until the container is there
    context = click.get_current_context()
    if context.args:
        raise click.UsageError(
            f"{hide_login(context.args[0])!r}: expected options only; use --listen URL for the URL of a listener."
        )
    typed = {
        option.name: given[option.name]
        for option in SERVE_OPTIONS
        if context.get_parameter_source(option.name) is not click.core.ParameterSource.DEFAULT
    }
    read = partial(_options, config, given, typed)
    try:
        options = read()
    except (CommandError, OSError) as failure:
        say(f"amqp10: {failure if isinstance(failure, CommandError) else explain(failure)}")
        sys.exit(2)
    from .serve import serve

    if check:
        run_plain(partial(_check, options))
    run(partial(serve, options, read_again=read if config is not None else None, hangups=hangups))


def _check(options: ServeOptions) -> list[str]:
    from .serve import check

    try:
        check(options)
    except (CommandError, AmqpError) as wrong:
        raise CommandError(str(wrong), 2) from None
    return ["valid"]


def _options(config: str | None, given: Mapping[str, Any], typed: Mapping[str, Any]) -> ServeOptions:
    """Return the options of the command line, the file, and the defaults.

    Raises:
        click.UsageError: options of the command line exclude each other.
        CommandError: the file is not valid, or its keys exclude each other.
        OSError: the file cannot be read.
    """
    from .node_rules import quotas_of
    from .serve import ServeOptions

    found = {} if config is None else read_config(config)
    merged = {**given, **found, **typed}
    if "users" in typed and "users_file" not in typed:
        merged["users_file"] = None
    if "users_file" in typed and "users" not in typed:
        merged["users"] = {}
    fault = _fault_of(merged)
    if fault is not None and config is None:
        raise click.UsageError(fault)
    if fault is not None:
        raise CommandError(f"{config}: {fault}", 2)
    merged["quotas"] = quotas_of(merged["quotas"])
    return ServeOptions(**merged)


def _fault_of(merged: Mapping[str, Any]) -> str | None:
    if merged["users"] and merged["users_file"] is not None:
        return "--user and --users exclude each other: use one of them (in a file: users and users-file)."
    for queue, rules in merged["queues"]:
        if rules.get("durable") and merged["store"] is None:
            return f"--queue {queue},durable=true needs --store."
    for flag, given in (("--queue", merged["queues"]), ("--topic", merged["topics"])):
        twice = [name for name, count in Counter(name for name, _ in given).items() if count > 1]
        if twice:
            return f"{flag} {twice[0]} is given more than once: give each name once, with all its rules."
    if merged["backup"] is not None and merged["store"] is None:
        return "--backup needs --store."
    if merged["tls_cert"] is None and (merged["tls_key"] is not None or merged["tls_client_ca"] is not None):
        return "--tls-key and --tls-client-ca need --tls-cert."
    return None
