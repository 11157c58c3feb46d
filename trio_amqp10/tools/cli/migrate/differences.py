"""Rules of our queues as arguments of RabbitMQ, and what has no counterpart there.

Arguments are translated to rules by ``broker.exchanges.arguments``; here is the other direction. Knows names and values only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.exchanges.addresses import EXCHANGES, parse_exchange
from trio_amqp10.broker.exchanges.arguments import KEPT, KNOWN
from trio_amqp10.broker.nodes.policy import QUEUE_RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

_OVERFLOWS: Final = {
    "drop-oldest": "drop-head",
    "reject": "reject-publish",
    "reject-dead-letter": "reject-publish-dlx",
    "wait": "reject-publish",
}
_PLAIN: Final = {"max-length": "x-max-length", "max-octets": "x-max-length-bytes", "ttl": "x-message-ttl"}
_DEFAULTS: Final = {rule.option: rule.default for rule in QUEUE_RULES}
_NO_COUNTERPART: Final = {
    "redelivery-delay": "a message is delivered again at once after a failed attempt",
    "redelivery-delay-multiplier": "a message is delivered again at once after a failed attempt",
    "max-redelivery-delay": "a message is delivered again at once after a failed attempt",
    "grouped": "messages with one group-id may go to several consumers",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A thing that is not at the target as it is at the source.

    Attributes:
        what: the thing, as ``queue orders``.
        rule: its rule, with the value; empty for the whole thing.
        instead: what happens instead.
    """

    what: str
    rule: str
    instead: str

    def __str__(self) -> str:
        return f"{self.what}: {self.rule + ': ' if self.rule else ''}{self.instead}"


def translate(name: str, rules: Mapping[str, Any]) -> tuple[dict[str, Any], list[Difference]]:
    """Return the arguments of RabbitMQ for the rules of a queue, and the differences.

    Args:
        name: the name of the queue.
        rules: those that differ from a new queue's, by their names in ``$management``.
    """
    given = {**_DEFAULTS, **rules}
    quorum = given["delivery-limit"] is not None
    arguments: dict[str, Any] = {"x-queue-type": "quorum" if quorum else "classic"}
    found: list[tuple[str, str]] = []
    arguments |= {theirs: given[ours] for ours, theirs in _PLAIN.items() if given[ours] is not None}
    if given["expires"] is not None:
        arguments["x-expires"] = max(1, round(given["expires"] * 1000))
    if quorum:
        # RabbitMQ counts failed attempts that are permitted, and these are one less than here.
        arguments["x-delivery-limit"] = given["delivery-limit"] - 1
    if given["dead-letter"] is not None:
        arguments |= _dead_letter(given["dead-letter"])
    found += _overflow(given, arguments, quorum)
    found += _priorities(given, arguments, quorum)
    if given["single-active"] or given["exclusive"]:
        arguments["x-single-active-consumer"] = True
    if given["exclusive"]:
        found.append(("exclusive", "a second consumer is not refused: it waits until the first one goes"))
    if given["durable"] and not quorum:
        found.append(("durable", "messages that are not durable are lost when RabbitMQ restarts"))
    found += [(rule, instead) for rule, instead in _NO_COUNTERPART.items() if given[rule]]
    return arguments, [
        Difference(what=f"queue {name}", rule=f"{rule}={_shown(given[rule])}", instead=instead)
        for rule, instead in found
    ]


def _shown(value: Any) -> str:
    return "any" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _dead_letter(address: str) -> dict[str, str]:
    if not address.startswith(EXCHANGES):
        return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": address}
    exchange = parse_exchange(address)
    if exchange is None:
        return {"x-dead-letter-exchange": address.removeprefix(EXCHANGES)}
    return {"x-dead-letter-exchange": exchange[0], "x-dead-letter-routing-key": exchange[1]}


def _overflow(given: Mapping[str, Any], arguments: dict[str, Any], quorum: bool) -> list[tuple[str, str]]:
    if given["max-length"] is None and given["max-octets"] is None:
        return []
    overflow = given["overflow"]
    found: list[tuple[str, str]] = []
    arguments["x-overflow"] = _OVERFLOWS[overflow]
    if overflow == "wait":
        found.append(("overflow", "a full queue rejects messages; their senders do not wait"))
    if overflow == "reject-dead-letter" and quorum:
        arguments["x-overflow"] = "reject-publish"
        found.append(
            ("overflow", "a message that is rejected is no dead letter, because the queue is quorum")
        )
    if given["bound"] == "held":
        found.append(("bound", "messages that consumers have do not count"))
    return found


def _priorities(given: Mapping[str, Any], arguments: dict[str, Any], quorum: bool) -> list[tuple[str, str]]:
    highest: int | None = given["max-priority"]
    if quorum and highest != 0:
        return [("max-priority", "a quorum queue has two priorities, of 5 and more and of the others")]
    if highest is None:
        return [("max-priority", "priorities are ignored, as with max-priority=0")]
    if highest:
        arguments["x-max-priority"] = highest
        return [("max-priority", "a message without a priority has the lowest one, not 4")]
    return []


def differences_of_arguments(name: str, arguments: Mapping[str, Any]) -> list[Difference]:
    """Return the differences of a declared queue of RabbitMQ in a container.

    Args:
        name: the name of the queue.
        arguments: those of its declaration.
    """
    what = f"queue {name}"
    if arguments.get("x-queue-type") == "stream":
        return [Difference(what=what, rule="x-queue-type=stream", instead="a stream is not migrated")]
    return [
        Difference(what=what, rule=f"{argument}={value}", instead="it has no effect")
        for argument, value in arguments.items()
        if argument in KEPT or argument not in KNOWN
    ]


def queue_conflict(name: str, place: str, rules: Mapping[str, Any]) -> str:
    """Return the line for a queue that exists at the target with other rules."""
    has = ", ".join(
        f"{rule}={value if isinstance(value, str) else json.dumps(value)}" for rule, value in rules.items()
    )
    return f"queue {name} exists at {place} with other rules: {has or 'none'}"
