"""Nodes and their rules on the command line: ``NAME,max-length=10,dead-letter=dead,grouped``.

Knows how rules are written; what they mean is the container's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import click

from trio_amqp10 import QueuePolicy
from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["parse_queue"]


def _flag(value: str) -> bool:
    if value not in ("", "true", "false"):
        raise ValueError(value)
    return value != "false"


_TEXTS: Final = ("overflow", "dead_letter")
_RULES: Final[dict[str, Callable[[str], Any]]] = {
    field.name.replace("_", "-"): str if field.name in _TEXTS else _flag if field.default is False else int
    for field in fields(QueuePolicy)
}


def parse_queue(value: str) -> tuple[str, dict[str, Any]]:
    """A queue's name, and the arguments for ``Container.add_queue``.

    Raises:
        click.BadParameter: a rule is not known, or its value not possible.
    """
    name, *parts = value.split(",")
    if not name:
        raise click.BadParameter(f"{value!r} names no queue; write NAME or NAME,RULE=VALUE,...")
    rules: dict[str, Any] = {}
    for part in parts:
        rule, _, text = part.partition("=")
        read = _RULES.get(rule)
        if read is None:
            raise click.BadParameter(f"{part!r} is no rule of a queue; one of {', '.join(sorted(_RULES))} is")
        try:
            rules[rule.replace("-", "_")] = read(text)
        except ValueError:
            raise click.BadParameter(f"{rule}={text!r}: that is not possible") from None
    try:
        QueuePolicy(**rules)
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong)) from None
    return name, rules
