"""Where a command goes in AMQP 0-9-1: a URL whose path is the virtual host, and a queue or an exchange beside it. Knows click."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Route", "amqp091_options", "is_091"]

_DIALECT: Final = "0-9-1"


@dataclass(frozen=True, slots=True)
class Route:
    """Where messages are published: a queue is a routing key of the exchange without a name."""

    exchange: str
    routing_key: str


def is_091(url: str) -> bool:
    """Whether the scheme of a URL says AMQP 0-9-1."""
    return url.partition("://")[0].lower().startswith("amqp091")


def amqp091_options(
    as_target: Callable[[str], tuple[str, str]], *, publishes: bool = False, required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command its target in either protocol: ``target``, and ``route``, which is None in AMQP 1.0.

    Args:
        as_target: reads ``URL/ADDRESS`` of AMQP 1.0.
        publishes: it may publish to an exchange.
        required: there has to be a URL; otherwise ``target`` is None without one.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_target(url: str | None, queue: str | None, dialect: str | None, **others: Any) -> None:
            exchange, key = others.pop("exchange", None), others.pop("routing_key", None)
            if url is None:
                if dialect == _DIALECT:
                    raise click.UsageError("AMQP 0-9-1 needs a server: give its URL and a queue.")
                command(target=None, route=None, **others)
                return
            try:
                if is_091(url) or dialect == _DIALECT:
                    if others.get("guarantee") == "exactly-once":
                        raise click.UsageError("AMQP 0-9-1 has no exactly-once: use at-least-once.")
                    _check_url(url)
                    command(
                        target=(url, queue or ""), route=_route(queue, exchange, key, publishes), **others
                    )
                    return
            except LocalProtocolError as wrong:
                raise click.BadParameter(str(wrong), param_hint="'URL'") from None
            if queue is not None or exchange is not None or key is not None:
                raise click.UsageError(
                    "QUEUE, --exchange and --routing-key are of AMQP 0-9-1: dial amqp091://, or say --dialect 0-9-1."
                )
            try:
                target = as_target(url)
            except click.BadParameter as wrong:
                wrong.param_hint = "'URL/ADDRESS'"
                raise
            command(target=target, route=None, **others)

        made: Callable[..., None] = with_target
        if publishes:
            made = click.option("--exchange", metavar="NAME", help="The exchange, in AMQP 0-9-1.")(made)
            made = click.option("--routing-key", metavar="KEY", help="The routing key, in AMQP 0-9-1.")(made)
        made = click.option(
            "--dialect",
            type=click.Choice(["1.0", _DIALECT]),
            help="The protocol for amqp:// URLs; amqp091:// always means 0-9-1.",
        )(made)
        made = click.argument("queue", metavar="[QUEUE]", required=False)(made)
        metavar = "URL/ADDRESS" if required else "[URL/ADDRESS]"
        return click.argument("url", metavar=metavar, required=required)(made)

    return decorate


def _check_url(url: str) -> None:
    from trio_amqp10.amqp091.client.urls import parse_place

    parse_place(url)


def _route(queue: str | None, exchange: str | None, key: str | None, publishes: bool) -> Route:
    if queue is not None and (exchange is not None or key is not None):
        raise click.UsageError("QUEUE and --exchange or --routing-key exclude each other.")
    if queue is not None:
        return Route("", queue)
    if exchange is None and key is None:
        other = ", or --exchange and --routing-key" if publishes else ""
        raise click.UsageError(
            "the path of an AMQP 0-9-1 URL is the virtual host: name a queue behind it, as in "
            f"amqp091://localhost/ orders{other}."
        )
    return Route(exchange or "", key or "")
