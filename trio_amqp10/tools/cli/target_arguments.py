"""The arguments that name the target of a command in AMQP 1.0 or 0-9-1.

In 0-9-1 the path of the URL is the virtual host, so the queue or the exchange is a separate argument. A
container that is managed is named by its URL alone. Knows click.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import click

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import hide_login, parse_url

from .server_defaults import default_url, is_091, with_login

if TYPE_CHECKING:
    from collections.abc import Callable

_DIALECT: Final = "0-9-1"


@dataclass(frozen=True, slots=True)
class Route:
    """The exchange and the routing key of a publish.

    For a queue, the exchange is the default one, without a name, and the routing key is the name of the queue.
    """

    exchange: str
    routing_key: str


def management_place(value: str) -> str:
    """Return the URL of a container or a broker, checked, with the known login.

    Raises:
        click.BadParameter: the text is not a URL.
        click.UsageError: a variable or the file of contexts is not valid.
    """
    from .dial_management import management_url

    if "://" not in value:
        raise no_scheme(value, "")
    try:
        url = parse_url(management_url(value)[0])
        if url.address is not None:
            raise click.BadParameter(
                f"{url} and the path {url.address!r}: expected the URL of a server, without the address of a node"
            )
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
    return with_login(value)


@dataclass(frozen=True, slots=True)
class Word:
    """An argument after the URL of a server.

    Attributes:
        name: the parameter of the command.
        metavar: its name for users.
        parse: returns the value of its text, or raises ``click.BadParameter``.
        required: whether the command needs it.
    """

    name: str
    metavar: str
    parse: Callable[[str], Any] = str
    required: bool = True


def server_arguments(*words: Word) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the URL of a server, and these arguments, to the parameters of a command.

    Without a URL the command uses the server of the context or of ``AMQP10_URL``. The command gets ``url`` and the values.
    """

    names = " ".join(["[URL]", *(word.metavar if word.required else f"[{word.metavar}]" for word in words)])

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_url(arguments: tuple[str, ...], **others: Any) -> None:
            given = list(arguments)
            known = default_url()
            typed = bool(given) and (known is None or "://" in given[0])
            if not typed and known is None:
                raise click.MissingParameter(param_hint="'URL'", param_type="argument")
            try:
                url = management_place(given.pop(0) if typed else str(known))
            except click.BadParameter as wrong:
                wrong.param_hint = "'URL'"
                raise
            if len(given) > len(words):
                raise click.UsageError(f"{hide_login(given[len(words)])!r}: expected only {names}.")
            values: dict[str, Any] = {}
            for place, word in enumerate(words):
                if place >= len(given):
                    if word.required:
                        raise click.MissingParameter(param_hint=f"'{word.metavar}'", param_type="argument")
                    values[word.name] = None
                    continue
                try:
                    values[word.name] = word.parse(given[place])
                except click.BadParameter as wrong:
                    wrong.param_hint = f"'{word.metavar}'"
                    raise
            command(url=url, **values, **others)

        return click.argument("arguments", metavar=names, nargs=-1)(with_url)

    return decorate


def no_scheme(value: str, node: str) -> click.BadParameter:
    """Return the error of a text that is not a URL, with a URL as example."""
    if ":" in value.partition("/")[0]:
        shown = hide_login(value)
        return click.BadParameter(f"{shown!r}: expected a URL, as in amqp://{shown}")
    return click.BadParameter(
        f"{value!r}: expected a URL, as in amqp://localhost:5672{node}; AMQP10_URL gives the server of an address alone"
        if node
        else f"{value!r}: expected a URL, as in amqp://localhost:5672"
    )


def amqp091_options(
    as_target: Callable[[str], tuple[str, str]], *, publishes: bool = False, required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the URL, the queue and ``--dialect`` to the parameters of a command.

    The command gets ``target``, the URL and the address (or queue), and ``route``, which is None in AMQP 1.0.

    Args:
        as_target: splits ``URL/ADDRESS`` of AMQP 1.0.
        publishes: whether the command may publish to an exchange.
        required: whether the user must give a URL; otherwise ``target`` is None if there is none.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_target(url: str | None, queue: str | None, dialect: str | None, **others: Any) -> None:
            exchange, key = others.pop("exchange", None), others.pop("routing_key", None)
            if url is not None or required:
                url, queue = _completed(url, queue, dialect)
            if url is None:
                if dialect == _DIALECT:
                    raise click.UsageError("AMQP 0-9-1 needs a server: give its URL and a queue.")
                command(target=None, route=None, **others)
                return
            try:
                if is_091(url) or dialect == _DIALECT:
                    if others.get("guarantee") == "exactly-once":
                        raise click.UsageError(
                            "AMQP 0-9-1 has no exactly-once delivery: use --guarantee at-least-once."
                        )
                    _check_url(url)
                    command(
                        target=(with_login(url), queue or ""),
                        route=_route(queue, exchange, key, publishes),
                        **others,
                    )
                    return
            except LocalProtocolError as wrong:
                raise click.BadParameter(str(wrong), param_hint="'URL'") from None
            if queue is not None and exchange is None and key is None and dialect is None:
                raise click.UsageError(
                    f"{queue!r}: AMQP 1.0 names the node in the URL: write URL/{quote(queue, safe='')}, or use an amqp091:// URL."
                )
            if queue is not None or exchange is not None or key is not None:
                raise click.UsageError(
                    "QUEUE, --exchange and --routing-key are for AMQP 0-9-1: use an amqp091:// URL, or --dialect 0-9-1."
                )
            try:
                target = as_target(url)
            except click.BadParameter as wrong:
                wrong.param_hint = "'URL/ADDRESS'"
                raise
            command(target=target, route=None, **others)

        made: Callable[..., None] = with_target
        if publishes:
            made = click.option(
                "--exchange", metavar="NAME", help="The exchange to publish to, in AMQP 0-9-1."
            )(made)
            made = click.option(
                "--routing-key", metavar="KEY", help="The routing key of the messages, in AMQP 0-9-1."
            )(made)
        made = click.option(
            "--dialect",
            type=click.Choice(["1.0", _DIALECT]),
            help="The protocol for an amqp:// URL, 1.0 by default; amqp091:// always means 0-9-1.",
        )(made)
        made = click.argument("queue", metavar="[QUEUE]", required=False)(made)
        metavar = "URL/ADDRESS" if required else "[URL/ADDRESS]"
        return click.argument("url", metavar=metavar, required=False)(made)

    return decorate


def _completed(url: str | None, queue: str | None, dialect: str | None) -> tuple[str, str | None]:
    """Return the URL and the queue, with the URL of the context for a queue alone."""
    known = default_url()
    if url is None:
        if known is None:
            raise click.MissingParameter(param_hint="'URL/ADDRESS'", param_type="argument")
        return known, queue
    if "://" not in url and queue is None and known is not None and (is_091(known) or dialect == _DIALECT):
        return known, url
    return url, queue


def _check_url(url: str) -> None:
    from trio_amqp10.amqp091.client.urls import parse_place

    parse_place(url)


def _route(queue: str | None, exchange: str | None, key: str | None, publishes: bool) -> Route:
    if queue is not None and (exchange is not None or key is not None):
        raise click.UsageError(
            "QUEUE excludes --exchange and --routing-key: give either a queue or an exchange."
        )
    if queue is not None:
        return Route("", queue)
    if exchange is None and key is None:
        other = ", or --exchange and --routing-key" if publishes else ""
        raise click.UsageError(
            "The path of an AMQP 0-9-1 URL is the virtual host, so name the queue after the URL, as in "
            f"amqp091://localhost/ orders{other}."
        )
    return Route(exchange or "", key or "")
