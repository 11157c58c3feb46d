"""Types of options: paths, durations and counts.

Each error message includes the expected form.

Knows click.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path

if TYPE_CHECKING:
    from click import Context, Parameter


class LocalPath(click.Path):
    """A path on this machine, also as a ``file`` URI or with ``~``.

    URIs of other schemes are refused.

    The command gets the absolute path.
    """

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        if not (self.allow_dash and value == "-"):
            try:
                value = local_path(value)
            except LocalProtocolError as wrong:
                self.fail(str(wrong), param, ctx)
        return super().convert(value, param, ctx)


class _Seconds(click.FloatRange):
    """A duration in seconds, longer than 0."""

    name = "seconds"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r}: expected a number of seconds, more than 0, as in 0.5 or 30", param, ctx)


class Whole(click.IntRange):
    """A whole number in a range."""

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            most = "at least" if self.max is None else "from"
            end = "" if self.max is None else f" to {self.max}"
            self.fail(f"{value!r}: expected a whole number, {most} {self.min}{end}", param, ctx)


COUNT: Final = Whole(min=1)
PRIORITY: Final = Whole(0, 255)
SECONDS: Final = _Seconds(min=0, min_open=True)
FILE: Final = LocalPath(exists=True, dir_okay=False, readable=True)


def file_of(value: str) -> str:
    """Return the absolute path of a file that is one of several arguments.

    Raises:
        click.BadParameter: the argument is not a path on this machine.
    """
    try:
        return local_path(value)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
