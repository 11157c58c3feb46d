"""SubscriptionRules: which messages of a topic go to a subscription.

A message goes there, once, if the filter of any of its rules passes it. A filter is an expression in the SQL of Service Bus, a
correlation filter, which compares fields, or a function of Python. Rules have no actions here.

Expressions are rewritten in the language of selectors (``filters.selector``), which differs in its names:

============================================  =================================================
of Service Bus                                as a selector
============================================  =================================================
``sys.Label``, in any case                    ``amqp.subject``
``colour``, ``user.colour``, ``[colour]``     ``[colour]``, a key of the application-properties
``EXISTS(colour)``                            ``[colour] IS NOT NULL``
============================================  =================================================

Knows messages; knows no entities.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.filters.errors import FilterError
from trio_amqp10.filters.selector import Selector
from trio_amqp10.filters.syntax import KEYWORDS
from trio_amqp10.wire.values import Described, Timestamp, ULong

from .constants import ALREADY_EXISTS, ARGUMENT_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.message import Message

    Wants = Callable[[Message], bool]

__all__ = ["DEFAULT_RULE", "SubscriptionRules"]

DEFAULT_RULE: Final = "$Default"
"""The rule that a subscription has where nothing else is said."""

_MOST: Final = 2000
"""Rules of one subscription."""
_LONGEST: Final = 50
"""Characters of a rule's name."""

_DESCRIPTION: Final = ULong(0x137_00000004)
_NO_ACTION: Final = ULong(0x137_00000005)
_SQL: Final = ULong(0x137_0000006)
_TRUE: Final = ULong(0x137_0000007)
_CORRELATION: Final = ULong(0x137_0000009)

_CORRELATED: Final = {
    "correlation-id": "correlation_id",
    "message-id": "message_id",
    "to": "to",
    "reply-to": "reply_to",
    "label": "subject",
    "session-id": "group_id",
    "reply-to-session-id": "reply_to_group_id",
    "content-type": "content_type",
}
"""Fields of a correlation filter in the order of its list, and the message's properties."""
_SYSTEM: Final = {name.replace("-", ""): field for name, field in _CORRELATED.items()} | {
    "subject": "subject"
}

_PIECE: Final = re.compile(
    r"""(?P<kept>'[^']*(?:''[^']*)*' | [0-9][\w.]* | [^\w\s'"\[$]+ | \s+)
    | EXISTS\s*\(\s*(?P<exists>(?:\w+\s*\.\s*)?(?:\w+|\[[^\]]*\]))\s*\)
    | (?:(?P<scope>[^\W\d]\w*)\s*\.\s*)? (?:\[(?P<bracketed>[^\]]*)\] | "(?P<quoted>[^"]*)" | (?P<word>[^\W\d][\w$]*))
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


class _Rule(NamedTuple):
    """A rule: its filter as replies show it, what it passes, and since when there is it (milliseconds since 1970)."""

    filter: Described
    passes: Wants
    created: int


class SubscriptionRules:
    """The rules of one subscription.

    Args:
        clock: tells when a rule was made.
        wants: the filter of ``$Default``; None for one that passes everything.
        sql: expressions by the names of their rules, in place of ``$Default``; None for that.

    Raises:
        LocalProtocolError: an expression that is none; or SQL without the extra ``selector``.
    """

    def __init__(
        self, clock: Clock, wants: Wants | None = None, sql: Mapping[str, str] | None = None
    ) -> None:
        self._clock = clock
        self._rules: dict[str, _Rule] = {}
        if sql is None:
            shown = Described(_TRUE, []) if wants is None else Described(_SQL, ["a function of Python"])
            self._put(DEFAULT_RULE, shown, _everything if wants is None else wants)
            return
        for name, expression in sql.items():
            try:
                self._put(name, *_sql_filter(expression))
            except RefusedError as refusal:
                raise LocalProtocolError(f"rule {name!r}: {refusal.description}") from refusal

    def passes(self, message: Message) -> bool:
        """Whether the subscription is to have a message."""
        return any(rule.passes(message) is True for rule in self._rules.values())

    def add(self, name: str, description: Mapping[Any, Any]) -> None:
        """A rule as a client describes it: with a ``sql-filter`` or a ``correlation-filter``.

        Raises:
            RefusedError: there is a rule of this name; or it has no filter that can be served, or an action.
        """
        if name in self._rules:
            raise RefusedError(ALREADY_EXISTS, f"there is a rule {name!r}")
        if not name or len(name) > _LONGEST:
            raise RefusedError(
                ARGUMENT_ERROR, f"the name of a rule has 1 to {_LONGEST} characters, not {len(name)}"
            )
        if len(self._rules) >= _MOST:
            raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, f"a subscription has {_MOST} rules at most")
        if description.get("sql-rule-action") is not None:
            raise RefusedError(Condition.NOT_IMPLEMENTED, "rules have no actions here")
        sql: Any = description.get("sql-filter")
        correlation: Any = description.get("correlation-filter")
        if sql.__class__ is dict:
            self._put(name, *_sql_filter(sql.get("expression")))
        elif correlation.__class__ is dict:
            self._put(name, *_correlation_filter(correlation))
        else:
            raise RefusedError(ARGUMENT_ERROR, "a rule has a sql-filter or a correlation-filter, as a map")

    def remove(self, name: str) -> None:
        """Remove a rule.

        Raises:
            RefusedError: there is none of this name.
        """
        if self._rules.pop(name, None) is None:
            raise RefusedError(Condition.NOT_FOUND, f"no rule {name!r}")

    def describe(self, skip: int, top: int) -> list[dict[str, Described]]:
        """So many rules as replies have them, behind those that are skipped."""
        return [
            {
                "rule-description": Described(
                    _DESCRIPTION,
                    [rule.filter, Described(_NO_ACTION, []), name, Timestamp(rule.created)],
                )
            }
            for name, rule in list(self._rules.items())[skip : skip + top]
        ]

    def _put(self, name: str, shown: Described, passes: Wants) -> None:
        self._rules[name] = _Rule(shown, passes, int(self._clock.wall() * 1000))


def _everything(_message: Message) -> bool:
    return True


def _sql_filter(expression: object) -> tuple[Described, Wants]:
    if not isinstance(expression, str):
        raise RefusedError(ARGUMENT_ERROR, f"expression={expression!r}: SQL is a string")
    try:
        selector = Selector(_rewritten(expression))
    except FilterError as fault:
        raise RefusedError(ARGUMENT_ERROR, f"{expression!r}: {fault}") from fault
    except LocalProtocolError as missing:
        raise RefusedError(Condition.NOT_IMPLEMENTED, str(missing)) from missing
    return Described(_SQL, [expression]), selector.matches


def _rewritten(expression: str) -> str:
    return _PIECE.sub(_rewritten_piece, expression)


def _rewritten_piece(piece: re.Match[str]) -> str:
    if piece["kept"] is not None or piece["other"] is not None:
        return piece[0]
    if piece["exists"] is not None:
        return f"({_rewritten(piece['exists'])} IS NOT NULL)"
    scope, word = (piece["scope"] or "").lower(), piece["word"]
    name = next(each for each in (piece["bracketed"], piece["quoted"], word) if each is not None)
    if scope == "sys":
        field = _SYSTEM.get(name.lower())
        if field is None:
            raise FilterError(f"sys.{name} is not known here: expected one of {', '.join(sorted(_SYSTEM))}")
        return f"amqp.{field}"
    if not scope and word is not None and word.upper() in KEYWORDS:
        return word
    if scope not in ("", "user"):
        raise FilterError(f"{piece[0]!r}: the scope of a name is sys or user")
    return f"[{name}]"


def _correlation_filter(asked: Mapping[Any, Any]) -> tuple[Described, Wants]:
    fields = {name: asked.get(name) for name in _CORRELATED}
    properties: Any = asked.get("properties")
    wanted: dict[Any, Any] = properties if properties.__class__ is dict else {}
    compared = {_CORRELATED[name]: value for name, value in fields.items() if value is not None}
    if not compared and not wanted:
        raise RefusedError(ARGUMENT_ERROR, "a correlation filter compares one field or property at least")

    def passes(message: Message) -> bool:
        said = message.application_properties
        return all(getattr(message, field) == value for field, value in compared.items()) and all(
            said.get(key) == value for key, value in wanted.items()
        )

    return Described(_CORRELATION, [*fields.values(), wanted]), passes
