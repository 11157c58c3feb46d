"""Parse the rules of nodes, quotas and limits, from text or from TOML.

Text has the form ``NAME,max-length=10``.

Knows the syntax of rules; the container implements their meaning.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import click

from trio_amqp10 import QueuePolicy, Quotas
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.broker.nodes.policy import QUEUE_RULES, Rule
from trio_amqp10.broker.nodes.topic import TOPIC_RULES, check_limits
from trio_amqp10.container.dialects import ALWAYS, DIALECTS
from trio_amqp10.core.errors import LocalProtocolError

from .toml_file import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.broker.nodes.policy import RuleKind

    from .toml_file import Faults


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
"""The parser for each kind of rule, and the expected form for error messages."""

_RULES: Final = {rule.option: rule for rule in QUEUE_RULES}
_LIMITS: Final = {rule.option: rule for rule in TOPIC_RULES}


def parse_queue(value: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a queue, and the arguments for ``Container.add_queue``.

    Raises:
        click.BadParameter: a rule is unknown, or its value is not valid.
    """
    name, rules = _parse(value, "queue", _RULES)
    policy_of(rules)
    return name, rules


def parse_topic(value: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a topic, and the arguments for ``Container.add_topic``.

    Raises:
        click.BadParameter: a limit is unknown, or its value is not valid.
    """
    name, limits = _parse(value, "topic", _LIMITS)
    limits_of(limits)
    return name, limits


def _parse(value: str, kind: str, known: Mapping[str, Rule]) -> tuple[str, dict[str, Any]]:
    name, *parts = value.split(",")
    if not name:
        raise click.BadParameter(f"{value!r} names no {kind}; write NAME or NAME,RULE=VALUE,...")
    rules: dict[str, Any] = {}
    for part in parts:
        option, _, text = part.partition("=")
        rule = known.get(option)
        if rule is None:
            raise click.BadParameter(
                f"{part!r} is not a rule of a {kind}; the rules are {', '.join(sorted(known))}"
            )
        rules[rule.name] = _value_of(rule, text)
    return name, rules


_POLICY: Final = {each.name for each in fields(QueuePolicy)}


def policy_of(rules: Mapping[str, Any]) -> QueuePolicy:
    """Return the policy for the arguments of ``Container.add_queue``.

    Raises:
        click.BadParameter: the rules contradict each other.
    """
    try:
        return QueuePolicy(**{name: value for name, value in rules.items() if name in _POLICY})
    except LocalProtocolError as wrong:
        raise click.BadParameter(_in_options(str(wrong))) from None


def limits_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all limits of a topic, from the arguments for ``Container.add_topic``.

    Raises:
        click.BadParameter: a limit is below 1.
    """
    limits = {rule.name: rule.default for rule in TOPIC_RULES} | dict(given)
    try:
        check_limits(**limits)
    except LocalProtocolError as wrong:
        raise click.BadParameter(_in_options(str(wrong))) from None
    return limits


def _value_of(rule: Rule, text: str) -> Any:
    read, _ = _KINDS[rule.kind]
    try:
        value = read(text)
    except (ValueError, click.BadParameter):
        value = None
    if value is None or (rule.choices and value not in rule.choices):
        raise click.BadParameter(f"{rule.option}={text!r}: expected {_expected(rule)}")
    return value


def _expected(rule: Rule) -> str:
    return f"one of {', '.join(rule.choices)}" if rule.choices else _KINDS[rule.kind][1]


def read_queue(faults: Faults, key: str, name: str, table: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the rules of a queue from a table of TOML."""
    if not name:
        faults.add(key, "a queue needs a name")
    rules = _read_rules(faults, key, table, _RULES)
    faults.parsed(key, policy_of, rules)
    return name, rules


def read_topic(faults: Faults, key: str, name: str, table: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the limits of a topic from a table of TOML."""
    if not name:
        faults.add(key, "a topic needs a name")
    limits = _read_rules(faults, key, table, _LIMITS)
    faults.parsed(key, limits_of, limits)
    return name, limits


def _read_rules(faults: Faults, key: str, table: Any, known: Mapping[str, Rule]) -> dict[str, Any]:
    """Return the values of a table of TOML, by the names of the rules."""
    rules: dict[str, Any] = {}
    if not faults.typed(key, table, dict):
        return rules
    faults.unknown(table, known, key)
    for option, value in table.items():
        if option in known:
            rule, place = known[option], dotted(key, option)
            if faults.typed(place, value, *_TYPED[rule.kind]):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                rules[rule.name] = faults.parsed(place, partial(_value_of, rule), text)
    return rules


_TYPED: Final[Mapping[str, tuple[type, ...]]] = {
    "flag": (bool,),
    "address": (str,),
    "choice": (str,),
    "count": (int,),
    "milliseconds": (int,),
    "octets": (int, str),
    "seconds": (int, float),
    "factor": (int, float),
}


def _in_options(fault: str) -> str:
    """Translate an error of ``QueuePolicy`` into the names of the command line.

    The command line has no None: it omits an option instead.
    """
    name, separator, rest = fault.partition("=")
    return f"{name.replace('_', '-')}{separator}{rest.partition(', or None')[0]}"


def describe_rules() -> list[tuple[str, str]]:
    """Return the syntax and the description of each rule of a queue."""
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
    """Return the options of each named dialect, for ``Container.serve(dialects=...)``.

    AMQP 1.0 is always served, so its name gives none.

    Raises:
        click.BadParameter: the dialect or an option is unknown, or a value is not valid.
    """
    name, *parts = value.split(",")
    if name not in ("all", ALWAYS, *DIALECTS):
        raise click.BadParameter(
            f"{name!r} is not a dialect; the dialects are {', '.join(('all', ALWAYS, *DIALECTS))}"
        )
    if parts and name != _WITH_OPTIONS:
        raise click.BadParameter(f"{value!r}: only the dialect {_WITH_OPTIONS} has options")
    values: dict[str, Any] = {}
    for part in parts:
        option, _, text = part.partition("=")
        rule = _OPTIONS.get(option)
        if rule is None:
            raise click.BadParameter(
                f"{part!r} is not an option of a dialect; the options are {', '.join(_OPTIONS)}"
            )
        values[rule.name] = _value_of(rule, text)
    if name == ALWAYS:
        return {}
    return dict.fromkeys(DIALECTS if name == "all" else (name,), _dialect_options(values))


def _dialect_options(values: Mapping[str, Any]) -> dict[str, Any]:
    flags = {rule.name for rule in _OPTIONS.values() if rule.kind == "flag"}
    options = {name: value for name, value in values.items() if name in flags}
    limits = {name: value for name, value in values.items() if name not in flags}
    if limits:
        try:
            options["limits"] = Limits(**limits)
        except ValueError as wrong:
            raise click.BadParameter(str(wrong)) from None
    return options


def read_dialects(faults: Faults, key: str, value: Any) -> dict[str, dict[str, Any]]:
    """Return the dialects of TOML: a name, names, or a table of the options of each."""
    found: dict[str, dict[str, Any]] = {}
    if not faults.typed(key, value, str, list, dict):
        return found
    if isinstance(value, dict):
        for name, table in cast("dict[str, Any]", value).items():
            place = dotted(key, name)
            if name == _WITH_OPTIONS:
                values = _read_rules(faults, place, table, _OPTIONS)
                found[name] = faults.parsed(place, _dialect_options, values) or {}
            elif faults.typed(place, table, dict):
                found |= faults.parsed(place, parse_dialect, name) or {}
                faults.unknown(table, (), place)
        return found
    for name in [value] if isinstance(value, str) else value:
        if faults.typed(key, name, str):
            found |= faults.parsed(key, parse_dialect, name) or {}
    return found


def parse_limit(value: str) -> int | None:
    """Parse a limit; ``none`` (no limit) gives None.

    Raises:
        click.BadParameter: the text is neither a number of at least 1 nor ``none``.
    """
    if value == "none":
        return None
    if not value.isdecimal() or not int(value):
        raise click.BadParameter(f"{value!r}: expected a number of at least 1, or none for no limit")
    return int(value)


_UNITS: Final = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_size(value: str) -> int | None:
    """Parse a number of octets, as ``512MiB``; ``none`` (no limit) gives None.

    Raises:
        click.BadParameter: the text is neither a size nor ``none``.
    """
    if value == "none":
        return None
    number = value.rstrip("KMGiB")
    unit = _UNITS.get(value[len(number) :])
    if unit is None or not number.isdecimal() or not int(number):
        raise click.BadParameter(
            f"{value!r}: expected a number of octets, as in 512MiB or 2GiB, or none for no limit"
        )
    return int(number) * unit


def parse_memory_limit(value: str) -> int | Literal["auto"] | None:
    """Parse a size as ``parse_size`` does, or ``auto``.

    Raises:
        click.BadParameter: the text is neither a size nor ``auto`` or ``none``.
    """
    return "auto" if value == "auto" else parse_size(value)


_QUOTAS: Final = tuple(field.name.replace("_", "-") for field in fields(Quotas) if field.name != "users")


def parse_quota(value: str) -> tuple[str | None, str, int]:
    """Return the user of a quota, its argument of ``Quotas``, and its value.

    A quota for all users has None as its user.

    Raises:
        click.BadParameter: the quota is unknown, or its value is not valid.
    """
    user, _, rule = value.rpartition(":")
    name, _, text = rule.partition("=")
    if name not in _QUOTAS:
        raise click.BadParameter(
            f"{rule!r} is not a quota; write NAME=VALUE, where NAME is one of {', '.join(_QUOTAS)}"
        )
    if not text.isdecimal() or not int(text):
        raise click.BadParameter(f"{name}={text!r}: expected a number of at least 1")
    return user or None, name.replace("-", "_"), int(text)


def read_quotas(faults: Faults, key: str, value: Any) -> list[tuple[str | None, str, int]]:
    """Return the quotas of a table of TOML; ``users`` has those of users."""
    found: list[tuple[str | None, str, int]] = []
    if not faults.typed(key, value, dict):
        return found
    users = value.get("users", {})
    tables = {None: {name: limit for name, limit in value.items() if name != "users"}}
    if faults.typed(f"{key}.users", users, dict):
        tables |= users
    for user, table in tables.items():
        place = key if user is None else dotted(key, "users", user)
        if not faults.typed(place, table, dict):
            continue
        faults.unknown(table, (*_QUOTAS, "users") if user is None else _QUOTAS, place)
        for name, limit in table.items():
            if name in _QUOTAS and faults.typed(dotted(place, name), limit, int):
                if limit < 1:
                    faults.add(dotted(place, name), f"{limit}: expected a number of at least 1")
                found.append((user, name.replace("-", "_"), limit))
    faults.parsed(key, quotas_of, [(user, name, max(1, limit)) for user, name, limit in found])
    return found


def quotas_of(parsed: Sequence[tuple[str | None, str, int]]) -> Quotas | None:
    """Return the quotas as one ``Quotas``, or None if there are none.

    Raises:
        click.BadParameter: a quota of nodes is given for a user.
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
