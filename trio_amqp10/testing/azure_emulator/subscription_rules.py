"""SubscriptionRules: the rules that select messages of a topic for a subscription.

A subscription gets a message, once, if the filter of any of its rules accepts it. A filter is an expression in the SQL of Service
Bus, a correlation filter, which compares fields, or a Python function. Each rule with an action makes a copy of its own, which the action
changes; all rules without one make one copy together.

Expressions are translated to selectors (``filters.selector``), which have other names:

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

from trio_amqp10.amqp10.filters.errors import FilterError
from trio_amqp10.amqp10.filters.selector import Selector
from trio_amqp10.amqp10.filters.syntax import KEYWORDS
from trio_amqp10.amqp10.wire.values import Described, Timestamp, ULong
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .constants import ALREADY_EXISTS, ARGUMENT_ERROR
from .rule_actions import parse_action

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.broker.nodes.clock import Clock

    from .stored_message import StoredMessage

    Wants = Callable[[Message], bool]

DEFAULT_RULE: Final = "$Default"
"""The name of the rule that a subscription has by default."""

_MOST: Final = 2000
"""The most rules of one subscription."""
_LONGEST: Final = 50
"""The most characters of a rule's name."""

_DESCRIPTION: Final = ULong(0x137_00000004)
_NO_ACTION: Final = ULong(0x137_00000005)
_ACTION: Final = ULong(0x137_00000006)
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
"""The fields of a correlation filter, in order, and the fields of messages."""
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
    """A rule: its filter, its time of creation, and its action.

    Filter and action stand twice: for replies, and as functions.

    The time is in milliseconds since 1970.
    """

    filter: Described
    passes: Wants
    created: int
    shown_action: Described
    action: Callable[[Message], None] | None


class SubscriptionRules:
    """The rules of one subscription.

    Args:
        clock: the clock for the times of rules.
        wants: the filter of ``$Default``; None accepts all messages.
        sql: expressions by the names of their rules, instead of ``$Default``; None for ``$Default``.

    Raises:
        LocalProtocolError: an expression is not valid, or the extra ``selector`` is missing.
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

    def copies(self, record: StoredMessage) -> list[StoredMessage]:
        """Return the copies of a message of the topic that the subscription gets."""
        message = record.message
        passing = [(name, rule) for name, rule in self._rules.items() if rule.passes(message) is True]
        plain = [record.copy()] if any(rule.action is None for _, rule in passing) else []
        changed = [record.changed_by(rule.action, name) for name, rule in passing if rule.action is not None]
        return plain + changed

    def add(self, name: str, description: Mapping[Any, Any]) -> None:
        """Add a rule of a client, from the map of its request.

        It has a ``sql-filter`` or a ``correlation-filter``, and perhaps a ``sql-rule-action``.

        Raises:
            RefusedError: a rule of this name exists, or its filter or its action is not valid.
        """
        if name in self._rules:
            raise RefusedError(ALREADY_EXISTS, f"the rule {name!r} exists: remove it first")
        if not name or len(name) > _LONGEST:
            raise RefusedError(
                ARGUMENT_ERROR, f"the name of a rule has 1 to {_LONGEST} characters, not {len(name)}"
            )
        if len(self._rules) >= _MOST:
            raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, f"a subscription has at most {_MOST} rules")
        asked: Any = description.get("sql-rule-action")
        action = asked.get("expression") if asked.__class__ is dict else None
        sql: Any = description.get("sql-filter")
        correlation: Any = description.get("correlation-filter")
        if sql.__class__ is dict:
            self._put(name, *_sql_filter(sql.get("expression")), action)
        elif correlation.__class__ is dict:
            self._put(name, *_correlation_filter(correlation), action)
        else:
            raise RefusedError(ARGUMENT_ERROR, "a rule needs a sql-filter or a correlation-filter, as a map")

    def remove(self, name: str) -> None:
        """Remove a rule.

        Raises:
            RefusedError: there is no rule of this name.
        """
        if self._rules.pop(name, None) is None:
            raise RefusedError(Condition.NOT_FOUND, f"no rule {name!r}")

    def describe(self, skip: int, top: int) -> list[dict[str, Described]]:
        """Return at most ``top`` rules for a reply, after the first ``skip`` rules."""
        return [
            {
                "rule-description": Described(
                    _DESCRIPTION,
                    [rule.filter, rule.shown_action, name, Timestamp(rule.created)],
                )
            }
            for name, rule in list(self._rules.items())[skip : skip + top]
        ]

    def _put(self, name: str, shown: Described, passes: Wants, action: object = None) -> None:
        change = None if action is None else parse_action(action, _SYSTEM, _rewritten)
        shown_action = Described(_NO_ACTION, []) if action is None else Described(_ACTION, [action, 20])
        self._rules[name] = _Rule(shown, passes, int(self._clock.wall() * 1000), shown_action, change)


def _everything(_message: Message) -> bool:
    return True


def _sql_filter(expression: object) -> tuple[Described, Wants]:
    if not isinstance(expression, str):
        raise RefusedError(ARGUMENT_ERROR, f"expression={expression!r}: expected a string of SQL")
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
            raise FilterError(f"sys.{name} is not supported: expected one of {', '.join(sorted(_SYSTEM))}")
        return f"amqp.{field}"
    if not scope and word is not None and word.upper() in KEYWORDS:
        return word
    if scope not in ("", "user"):
        raise FilterError(f"{piece[0]!r}: the scope of a name must be sys or user")
    return f"[{name}]"


def _correlation_filter(asked: Mapping[Any, Any]) -> tuple[Described, Wants]:
    fields = {name: asked.get(name) for name in _CORRELATED}
    properties: Any = asked.get("properties")
    wanted: dict[Any, Any] = properties if properties.__class__ is dict else {}
    compared = {_CORRELATED[name]: value for name, value in fields.items() if value is not None}
    if not compared and not wanted:
        raise RefusedError(ARGUMENT_ERROR, "a correlation filter must compare at least one field or property")

    def passes(message: Message) -> bool:
        found = message.application_properties
        return all(getattr(message, field) == value for field, value in compared.items()) and all(
            found.get(key) == value for key, value in wanted.items()
        )

    return Described(_CORRELATION, [*fields.values(), wanted]), passes
