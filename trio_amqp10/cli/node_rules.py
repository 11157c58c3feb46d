"""Parse rules of nodes and quotas: ``NAME,max-length=10,dead-letter=dead``.

Knows how rules are written; what they mean is the container's.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from trio_amqp10 import QueuePolicy, Quotas
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.container.nodes.policy import QUEUE_RULES, Rule
from trio_amqp10.container.protocols.table import DIALECTS
from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.container.nodes.policy import RuleKind

__all__ = [
    "describe_rules",
    "parse_dialect",
    "parse_limit",
    "parse_memory_limit",
    "parse_queue",
    "parse_quota",
    "parse_size",
    "quotas_of",
]


def _flag(value: str) -> bool:
    if value not in ("", "true", "false"):
        raise ValueError(value)
    return value != "false"


def _octets(value: str) -> int:
    number = parse_size(value)
    if number is None:
        raise ValueError(value)
    return number


_KINDS: Final[dict[RuleKind, tuple[Callable[[str], Any], str]]] = {
    "count": (int, "a whole number"),
    "octets": (_octets, "octets, as in 1000000 or 512MiB"),
    "milliseconds": (int, "a whole number of milliseconds, as in 60000"),
    "seconds": (float, "a number of seconds, as in 0.5 or 30"),
    "factor": (float, "a number, as in 2 or 1.5"),
    "address": (str, "an address"),
    "choice": (str, "one of"),
    "flag": (_flag, "true or false"),
}
"""How the value of a rule is read, and what is expected if that fails."""

_RULES: Final = {rule.option: rule for rule in QUEUE_RULES}


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
        option, _, text = part.partition("=")
        rule = _RULES.get(option)
        if rule is None:
            raise click.BadParameter(
                f"{part!r} is no rule of a queue; the rules are {', '.join(sorted(_RULES))}"
            )
        rules[rule.name] = _value_of(rule, text)
    try:
        QueuePolicy(**{name: value for name, value in rules.items() if name in _POLICY})
    except LocalProtocolError as wrong:
        raise click.BadParameter(_in_options(str(wrong))) from None
    return name, rules


_POLICY: Final = {each.name for each in fields(QueuePolicy)}


def _value_of(rule: Rule, text: str) -> Any:
    read, expected = _KINDS[rule.kind]
    if rule.choices:
        expected = f"one of {', '.join(rule.choices)}"
    try:
        value = read(text)
    except (ValueError, click.BadParameter):
        value = None
    if value is None or (rule.choices and value not in rule.choices):
        raise click.BadParameter(f"{rule.option}={text!r}: expected {expected}")
    return value


def _in_options(fault: str) -> str:
    """What ``QueuePolicy`` says, with the names of the command line, where None is an option left out."""
    name, separator, rest = fault.partition("=")
    return f"{name.replace('_', '-')}{separator}{rest.partition(', or None')[0]}"


def describe_rules() -> list[tuple[str, str]]:
    """Each rule of a queue as it is written, and what it does."""
    return [
        (f"{rule.option}={_sample_of(rule)}", f"{rule.help[0].upper()}{rule.help[1:]}.")
        for rule in QUEUE_RULES
    ]


def _sample_of(rule: Rule) -> str:
    if rule.choices:
        return "|".join(rule.choices)
    return {"flag": "true|false", "count": "N", "factor": "N"}.get(rule.kind, rule.kind.upper())


_OPTIONS: Final = {
    rule.option: rule
    for rule in (
        Rule("channel_max", "count", None, ""),
        Rule("heartbeat", "count", None, ""),
        Rule("frame_max", "octets", None, ""),
        Rule("max_message_size", "octets", None, ""),
        Rule("no_local", "flag", None, ""),
    )
}
_WITH_OPTIONS: Final = "0-9-1"


def parse_dialect(value: str) -> dict[str, dict[str, Any]]:
    """The options of each dialect that is named, for ``Container.serve(dialects=...)``.

    Raises:
        click.BadParameter: there is no such dialect, or an option is not known, or its value not possible.
    """
    name, *parts = value.split(",")
    if name not in ("all", *DIALECTS):
        raise click.BadParameter(f"{name!r} is no dialect; one of {', '.join(('all', *DIALECTS))} is")
    if parts and name != _WITH_OPTIONS:
        raise click.BadParameter(f"{value!r}: options are for {_WITH_OPTIONS}")
    limits: dict[str, int] = {}
    options: dict[str, Any] = {}
    for part in parts:
        option, _, text = part.partition("=")
        rule = _OPTIONS.get(option)
        if rule is None:
            raise click.BadParameter(
                f"{part!r} is no option of a dialect; the options are {', '.join(_OPTIONS)}"
            )
        (options if rule.kind == "flag" else limits)[rule.name] = _value_of(rule, text)
    if limits:
        try:
            options["limits"] = Limits(**limits)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        except ValueError as wrong:
            raise click.BadParameter(str(wrong)) from None
    return dict.fromkeys(DIALECTS if name == "all" else (name,), options)


def parse_limit(value: str) -> int | None:
    """A limit; None for ``none``, which is no limit.

    Raises:
        click.BadParameter: it is neither.
    """
    if value == "none":
        return None
    if not value.isdecimal() or not int(value):
        raise click.BadParameter(f"{value!r}: expected a number of at least 1, or none for no limit")
    return int(value)


_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_size(value: str) -> int | None:
    """Octets, as in ``512MiB``; None for ``none``, which is no limit.

    Raises:
        click.BadParameter: it is neither.
    """
    if value == "none":
        return None
    number = value.rstrip("KMGiB")
    unit = _UNITS.get(value[len(number) :])
    if unit is None or not number.isdecimal() or not int(number):
        raise click.BadParameter(
            f"{value!r}: octets are possible, as in 512MiB or 2GiB, or none for no limit"
        )
    return int(number) * unit


def parse_memory_limit(value: str) -> int | Literal["auto"] | None:
    """A size as ``parse_size`` reads it, or ``auto``.

    Raises:
        click.BadParameter: it is neither.
    """
    return "auto" if value == "auto" else parse_size(value)


_QUOTAS: Final = tuple(field.name.replace("_", "-") for field in fields(Quotas) if field.name != "users")


def parse_quota(value: str) -> tuple[str | None, str, int]:
    """Whose quota it is (None: everybody's), its name as an argument of ``Quotas``, and its value.

    Raises:
        click.BadParameter: there is no such quota, or its value is not possible.
    """
    user, _, rule = value.rpartition(":")
    name, _, text = rule.partition("=")
    if name not in _QUOTAS:
        raise click.BadParameter(
            f"{rule!r} is no quota; NAME=VALUE is, with {', '.join(_QUOTAS)} for the name"
        )
    if not text.isdecimal() or not int(text):
        raise click.BadParameter(f"{name}={text!r}: expected a number of at least 1")
    return user or None, name.replace("-", "_"), int(text)


def quotas_of(parsed: Sequence[tuple[str | None, str, int]]) -> Quotas | None:
    """All of them together; None where there are none.

    Raises:
        click.BadParameter: a quota of nodes is said to be a user's.
    """
    if not parsed:
        return None
    users: dict[str, dict[str, Any]] = {}
    common: dict[str, Any] = {}
    for user, name, limit in parsed:
        (common if user is None else users.setdefault(user, {}))[name] = limit
    try:
        return Quotas(**common, users={user: Quotas(**limits) for user, limits in users.items()})
    except LocalProtocolError as wrong:
        raise click.BadParameter(str(wrong), param_hint="--quota") from None
