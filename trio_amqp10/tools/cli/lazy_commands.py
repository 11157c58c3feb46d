"""Commands, parsers and the command runner, imported on first use.

Most starts of ``amqp10`` need one command, so the modules of the others are not imported. Knows click and names of modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .command_runner import Interrupts


class RulesCommand(click.Command):
    """A command whose help ends with the rules of a queue."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Rules of a queue"):
            formatter.write_dl(import_module(".node_rules", __package__).describe_rules())


class LazyGroup(click.Group):
    """A group of commands, some of which are imported on first use.

    Args:
        lazy: the module (within this package) and the attribute for each name: ``"module:command"``.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._lazy = lazy

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print "Aborted!" and exit with 1
            click.echo("amqp10: interrupted", err=True)
            ctx.exit(130)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name].partition(":")
        found = getattr(import_module(f".{module}", __package__), name)
        assert isinstance(found, click.Command)
        return found


def parsed_by(name: str) -> Callable[[str], Any]:
    """Return a parser that calls ``name`` of ``node_rules``, imported on first use."""

    def parse(text: str) -> Any:
        return getattr(import_module(".node_rules", __package__), name)(text)

    parse.__name__ = name
    return parse


def run(command: Callable[[Interrupts], Awaitable[None]]) -> NoReturn:
    """Call ``command_runner.run``, whose module imports trio."""
    from .command_runner import run as run_now

    run_now(command)
