"""The commands that operate a container, and their options.

Knows click, and which operation of management each command is.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .dial_options import dialling
from .lazy_commands import RulesCommand, parsed_by, run
from .option_types import COUNT, LocalPath
from .target_arguments import Word, server_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.container.management.remote_management import RemoteManagement

    from .dial_options import DialOptions


_server = server_arguments()
_named = server_arguments(Word("name", "NAME"))
_count = click.option(
    "--count", type=COUNT, help="At most this many messages. Without it, all that are ready."
)


def _showing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose how entities are shown."""
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print each as one JSON object, with all its attributes."
    )
    form = click.option(
        "--format",
        "form",
        metavar="TEXT",
        help="Print this line for each, with {NAME} for an attribute, as in '{name} {depth}'. --json shows the names.",
    )
    return as_json(form(dialling(command)))


def _list(kind: str, url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    from .manage import Show, list_all

    run(partial(list_all, Show(url=url, json=as_json, format=form, dial=dial), kind))


def _show(kind: str, url: str, name: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    from .manage import Show, show_one

    run(partial(show_one, Show(url=url, json=as_json, format=form, dial=dial), kind, name))


def _operate(url: str, dial: DialOptions, operation: Callable[[RemoteManagement], Awaitable[object]]) -> None:
    from .manage import operate

    run(partial(operate, url, dial, operation))


_HELP = 'The container needs $management, as in "amqp10 serve --management".'


# -- queues ---------------------------------------------------------------------------------


@click.group("queue", epilog=_HELP)
def queue_group() -> None:
    """List, show, create, change, browse, purge and delete queues of a container."""


@queue_group.command("list")
@_server
@_showing
def queue_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show all queues: how many messages they hold, and how many consumers they have.

    Queues of clients for their replies, whose names begin with temporary/, are left out.
    """
    _list("queue", url, as_json, form, dial)


@queue_group.command("show")
@_named
@_showing
def queue_show(url: str, name: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show one queue with all its rules and figures."""
    _show("queue", url, name, as_json, form, dial)


_rules = server_arguments(Word("rules", "NAME[,RULE=VALUE...]", parsed_by("parse_queue")))


@queue_group.command("create", cls=RulesCommand)
@_rules
@dialling
def queue_create(url: str, rules: tuple[str, dict[str, Any]], dial: DialOptions) -> None:
    """Create a queue with these rules, as in orders,max-length=1000,dead-letter=dead.

    With a store, it exists again after a restart.
    """
    _operate(url, dial, lambda management: management.create_queue(rules[0], **rules[1]))


def _rule_name(option: str) -> str:
    """Return the rule of a queue that this option names."""
    from trio_amqp10.broker.nodes.policy import QUEUE_RULES

    for rule in QUEUE_RULES:
        if rule.option == option:
            return rule.name
    raise click.UsageError(
        f"--unset {option!r} is no rule of a queue: expected {', '.join(rule.option for rule in QUEUE_RULES)}"
    )


@queue_group.command("set", cls=RulesCommand)
@_rules
@click.option(
    "--unset",
    metavar="RULE",
    multiple=True,
    help="Remove this rule, as in max-length. May be repeated.",
)
@dialling
def queue_set(url: str, rules: tuple[str, dict[str, Any]], unset: tuple[str, ...], dial: DialOptions) -> None:
    """Change rules of a queue; the others, and its messages, stay."""
    changes = rules[1] | dict.fromkeys(map(_rule_name, unset))
    if not changes:
        raise click.UsageError("Give at least one RULE=VALUE, or --unset RULE.")
    _operate(url, dial, lambda management: management.set_queue(rules[0], kind="queue", **changes))


@queue_group.command("browse")
@_named
@click.option("--count", type=COUNT, help="Print this many messages. Without it, print all.")
@click.option(
    "--filter", "selector", metavar="SELECTOR", help="Print only messages that match this JMS selector."
)
@click.option("--json", is_flag=True, help="Print the whole message as one JSON object.")
@dialling
def queue_browse(url: str, **given: Any) -> None:
    """Print the ready messages of a queue without removing them.

    Unlike "amqp10 browse", it asks $management, so the permission to manage the queue is enough.
    """
    from .manage import BrowseOptions, browse

    run(partial(browse, BrowseOptions(url=url, **given)))


@queue_group.command("purge")
@_named
@dialling
def queue_purge(url: str, name: str, dial: DialOptions) -> None:
    """Remove all ready messages of a queue, and print "purged N"."""
    from .manage import purge

    run(partial(purge, url, dial, name))


def _delete(kind: str, url: str, name: str, dial: DialOptions, *, if_empty: bool, if_unused: bool) -> None:
    _operate(
        url,
        dial,
        lambda management: management.delete(name, kind=kind, if_empty=if_empty, if_unused=if_unused),
    )


@queue_group.command("delete")
@_named
@click.option("--if-empty", is_flag=True, help="Delete it only if it has no ready messages.")
@click.option("--if-unused", is_flag=True, help="Delete it only if it has no consumers.")
@dialling
def queue_delete(url: str, name: str, if_empty: bool, if_unused: bool, dial: DialOptions) -> None:
    """Delete a queue with all its messages."""
    _delete("queue", url, name, dial, if_empty=if_empty, if_unused=if_unused)


# -- topics ---------------------------------------------------------------------------------


@click.group("topic", epilog=_HELP)
def topic_group() -> None:
    """List, show, create, change and delete topics of a container."""


@topic_group.command("list")
@_server
@_showing
def topic_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show all topics with the number of their subscriptions."""
    _list("topic", url, as_json, form, dial)


@topic_group.command("show")
@_named
@_showing
def topic_show(url: str, name: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show one topic with all its figures."""
    _show("topic", url, name, as_json, form, dial)


def _limits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the limits of a topic."""
    for option in (
        click.option("--max-subscriptions", type=COUNT, help="Subscriptions that the topic may have."),
        click.option(
            "--overflow",
            type=click.Choice(["detach", "drop-oldest", "reject", "wait"]),
            help="What happens when a subscription falls further behind.",
        ),
        click.option("--max-backlog", type=COUNT, help="Messages that a subscription may fall behind."),
    ):
        command = option(command)
    return command


def _given(limits: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in limits.items() if value is not None}


@topic_group.command("create")
@_named
@_limits
@dialling
def topic_create(url: str, name: str, dial: DialOptions, **limits: Any) -> None:
    """Create a topic. With a store, it exists again after a restart.

    Without --max-backlog, a subscription may fall behind by 10,000 messages.
    """
    _operate(url, dial, lambda management: management.create_topic(name, **_given(limits)))


@topic_group.command("set")
@_named
@_limits
@click.option(
    "--unset",
    type=click.Choice(["max-backlog", "max-subscriptions"]),
    multiple=True,
    help="Remove this limit. May be repeated.",
)
@dialling
def topic_set(url: str, name: str, unset: tuple[str, ...], dial: DialOptions, **limits: Any) -> None:
    """Change limits of a topic; the others, and its subscriptions, stay."""
    changes = _given(limits) | dict.fromkeys(each.replace("-", "_") for each in unset)
    if not changes:
        raise click.UsageError("Give at least one limit, as in --max-backlog 1000, or --unset LIMIT.")
    _operate(url, dial, lambda management: management.set_topic(name, **changes))


@topic_group.command("delete")
@_named
@click.option("--if-unused", is_flag=True, help="Delete it only if it has no receivers.")
@dialling
def topic_delete(url: str, name: str, if_unused: bool, dial: DialOptions) -> None:
    """Delete a topic with its subscriptions."""
    _delete("topic", url, name, dial, if_empty=False, if_unused=if_unused)


# -- exchanges and bindings -----------------------------------------------------------------


def _as_table(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Any:
    """Return the table of 0-9-1 in a text of JSON."""
    if text is None:
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter(f'{text!r:.64}: expected an object of JSON, as in {{"x-match": "any"}}')
    return found  # pyright: ignore[reportUnknownVariableType]


_table = click.option(
    "--arguments",
    "table",
    metavar="JSON",
    callback=_as_table,
    help="Arguments of AMQP 0-9-1, as an object of JSON.",
)


@click.group("exchange", epilog=_HELP)
def exchange_group() -> None:
    """List, show, create and delete exchanges of a container."""


@exchange_group.command("list")
@_server
@_showing
def exchange_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show all exchanges with the number of their bindings."""
    from .manage import Show, list_exchanges

    run(partial(list_exchanges, Show(url=url, json=as_json, format=form, dial=dial)))


@exchange_group.command("show")
@_named
@_showing
def exchange_show(url: str, name: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show one exchange, by its name in AMQP 0-9-1."""
    from .manage import Show, show_exchange

    run(partial(show_exchange, Show(url=url, json=as_json, format=form, dial=dial), name))


@exchange_group.command("create")
@_named
@click.option(
    "--type",
    type=click.Choice(["direct", "fanout", "topic", "headers"]),
    default="direct",
    show_default=True,
    help="How it selects bindings.",
)
@click.option("--transient", is_flag=True, help="Do not keep it after a restart.")
@click.option("--auto-delete", is_flag=True, help="Delete it with its last binding.")
@click.option("--internal", is_flag=True, help="Take messages only from other exchanges.")
@_table
@dialling
def exchange_create(
    url: str, name: str, transient: bool, table: dict[str, Any] | None, dial: DialOptions, **properties: Any
) -> None:
    """Create an exchange; one that exists with the same properties stays.

    With a store, it exists again after a restart.
    """
    _operate(
        url,
        dial,
        lambda management: management.declare_exchange(
            name, arguments=table, durable=not transient, **properties
        ),
    )


@exchange_group.command("delete")
@_named
@click.option("--if-unused", is_flag=True, help="Delete it only if it is the source of no binding.")
@dialling
def exchange_delete(url: str, name: str, if_unused: bool, dial: DialOptions) -> None:
    """Delete an exchange with its bindings."""
    _operate(url, dial, lambda management: management.delete_exchange(name, if_unused=if_unused))


@click.group("binding", epilog=_HELP)
def binding_group() -> None:
    """List, create and delete bindings of exchanges of a container."""


@binding_group.command("list")
@_server
@_showing
def binding_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show all bindings, but for those of the default exchange."""
    _list("binding", url, as_json, form, dial)


def _ends(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the arguments and options that name a binding."""
    for add in (
        dialling,
        _table,
        click.option(
            "--exchange", "to_exchange", is_flag=True, help="DESTINATION is an exchange, not a queue."
        ),
        click.option("--key", default="", help="The key of the binding.  [default: empty]"),
        server_arguments(Word("source", "EXCHANGE"), Word("destination", "DESTINATION")),
    ):
        command = add(command)
    return command


def _binding(to_exchange: bool, table: dict[str, Any] | None, **given: Any) -> dict[str, Any]:
    return {**given, "arguments": table, "destination_kind": "exchange" if to_exchange else "queue"}


@binding_group.command("create")
@_ends
def binding_create(url: str, dial: DialOptions, **given: Any) -> None:
    """Bind a queue to an exchange, or with --exchange an exchange to it."""
    _operate(url, dial, lambda management: management.bind(**_binding(**given)))


@binding_group.command("delete")
@_ends
def binding_delete(url: str, dial: DialOptions, **given: Any) -> None:
    """Remove a binding, if there is one with this key and these arguments."""
    _operate(url, dial, lambda management: management.unbind(**_binding(**given)))


# -- connections and users ------------------------------------------------------------------


@click.group("connection", epilog=_HELP)
def connection_group() -> None:
    """List, show and close connections of a container."""


@connection_group.command("list")
@_server
@_showing
def connection_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show all connections, oldest first; this command has one of them."""
    _list("connection", url, as_json, form, dial)


@connection_group.command("show")
@server_arguments(Word("identity", "IDENTITY"))
@_showing
def connection_show(url: str, identity: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show one connection, by the identity that "connection list" shows."""
    _show("connection", url, identity, as_json, form, dial)


@connection_group.command("close")
@server_arguments(Word("identity", "IDENTITY"))
@click.option("--reason", metavar="TEXT", help="Tell the peer this reason.")
@dialling
def connection_close(url: str, identity: str, reason: str | None, dial: DialOptions) -> None:
    """Close a connection with the error amqp:connection:forced."""
    from .manage import connection_number

    _operate(url, dial, lambda management: management.close_connection(connection_number(identity), reason))


@click.group("user", epilog=_HELP)
def user_group() -> None:
    """List users of a container."""


@user_group.command("list")
@_server
@_showing
def user_list(url: str, as_json: bool, form: str | None, dial: DialOptions) -> None:
    """Show the users that are connected or known to the container."""
    _list("user", url, as_json, form, dial)


# -- moves ----------------------------------------------------------------------------------


@click.command("move")
@server_arguments(Word("source", "FROM"), Word("target", "TO"))
@_count
@click.option(
    "--filter", "selector", metavar="SELECTOR", help="Move only messages that match this JMS selector."
)
@dialling
def move_command(url: str, **given: Any) -> None:
    """Move messages of a queue to another node, and print "moved N".

    A container with $management moves them itself: each message is at exactly one of the two, also if this command, or the
    container with a store, is killed. With another peer, this command receives and sends them, in transactions if the peer has
    them. Ctrl-C loses nothing.
    """
    from .moving import MoveOptions, move

    run(partial(move, MoveOptions(url=url, **given)))


@click.command("redrive", epilog=_HELP)
@server_arguments(Word("queue", "QUEUE"))
@_count
@click.option("--from", "died_in", metavar="QUEUE", help="Only messages that died in this queue.")
@dialling
def redrive_command(url: str, **given: Any) -> None:
    """Send dead letters in a queue back to the queues where they died.

    Prints how many went to each queue. Messages without a history of deaths stay, and those whose queue does not exist. Ctrl-C
    loses nothing.
    """
    from .moving import RedriveOptions, redrive

    run(partial(redrive, RedriveOptions(url=url, **given)))


# -- definitions ----------------------------------------------------------------------------


@click.group("definitions", epilog=_HELP)
def definitions_group() -> None:
    """Export and import queues, topics, exchanges and bindings."""


@definitions_group.command("export")
@server_arguments(Word("file", "FILE", LocalPath(dir_okay=False, allow_dash=True), required=False))
@dialling
def definitions_export(url: str, file: str | None, dial: DialOptions) -> None:
    """Write the definitions as JSON to a file, or to stdout."""
    from .manage import export_definitions

    run(partial(export_definitions, url, dial, file))


@definitions_group.command("import")
@server_arguments(
    Word("file", "FILE", LocalPath(exists=True, dir_okay=False, allow_dash=True), required=False)
)
@click.option(
    "--virtual-host",
    metavar="NAME",
    help="Of definitions of RabbitMQ, import those of this virtual host.  [default: the only one, or /]",
)
@dialling
def definitions_import(url: str, file: str | None, virtual_host: str | None, dial: DialOptions) -> None:
    """Make the queues, topics, exchanges and bindings of a file, or of stdin.

    Reads what "definitions export" wrote, and definitions of RabbitMQ. Reports on stderr what was left out, and then fails.
    """
    from .manage import import_definitions

    run(partial(import_definitions, url, dial, file, virtual_host))
