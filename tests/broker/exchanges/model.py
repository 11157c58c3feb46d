"""A broker as simple as can be: lists that are scanned, and a regular expression for each topic.

Written from the rules alone; shares nothing with the product but names of errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any


class ModelError(Exception):
    """The operation fails, with the name of the error that the product raises."""


@dataclass
class ModelQueue:
    durable: bool
    auto_delete: bool
    owner: str | None
    arguments: dict[str, Any]
    messages: int = 0
    consumers: int = 0


@dataclass
class ModelExchange:
    kind: str
    durable: bool
    auto_delete: bool
    internal: bool
    alternate: str | None


def fits_topic(pattern: str, key: str) -> bool:
    """A word is written with a dot behind it, so that no word at all and one empty word differ."""
    words = [] if pattern == "" else pattern.split(".")
    expression = "".join(
        r"(?:[^.]*\.)*" if word == "#" else r"[^.]*\." if word == "*" else re.escape(word) + r"\."
        for word in words
    )
    return re.fullmatch(expression, key + "." if key else "") is not None


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float) is not isinstance(other, float):
        return False
    if isinstance(one, str):
        one = one.encode()
    if isinstance(other, str):
        other = other.encode()
    return bool(one == other)


def fits_headers(arguments: dict[str, Any], headers: dict[str, Any]) -> bool:
    match = arguments.get("x-match", "all")
    wanted = {name: value for name, value in arguments.items() if name != "x-match"}
    if not match.endswith("with-x"):
        wanted = {name: value for name, value in wanted.items() if not name.startswith("x-")}
    hits = [
        name in headers and (value is None or same(value, headers[name])) for name, value in wanted.items()
    ]
    return any(hits) if match.startswith("any") else all(hits)


@dataclass
class Model:
    queues: dict[str, ModelQueue] = field(default_factory=dict)
    exchanges: dict[str, ModelExchange] = field(default_factory=dict)
    bindings: list[tuple[str, str, str, str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for kind in ("direct", "fanout", "topic", "headers"):
            self.exchanges[f"amq.{kind}"] = ModelExchange(kind, True, False, False, None)
        self.exchanges["amq.match"] = ModelExchange("headers", True, False, False, None)

    def declare_queue(
        self,
        name: str,
        durable: bool,
        auto_delete: bool,
        owner: str | None,
        arguments: dict[str, Any],
        peer: str,
    ) -> None:
        there = self.queues.get(name)
        if there is None:
            self.queues[name] = ModelQueue(durable, auto_delete, owner, arguments)
            return
        if there.owner not in (None, peer) or there.owner != owner:
            raise ModelError("LockedError")
        if (there.durable, there.auto_delete) != (durable, auto_delete):
            raise ModelError("InequivalentError")
        known = ("x-max-length", "x-message-ttl")
        if [there.arguments.get(each) for each in known] != [arguments.get(each) for each in known]:
            raise ModelError("InequivalentError")

    def delete_queue(self, name: str, peer: str) -> None:
        there = self.queues.get(name)
        if there is None:
            return
        if there.owner not in (None, peer):
            raise ModelError("LockedError")
        del self.queues[name]
        self.drop([each for each in self.bindings if each[1:3] == ("queue", name)])

    def declare_exchange(self, name: str, exchange: ModelExchange) -> None:
        there = self.exchanges.get(name)
        if there is not None and there != exchange:
            raise ModelError("InequivalentError")
        if there is None and name.startswith("amq."):
            raise ModelError("AccessRefusedError")
        self.exchanges.setdefault(name, exchange)

    def delete_exchange(self, name: str, if_unused: bool) -> None:
        if name.startswith("amq."):
            raise ModelError("AccessRefusedError")
        if name not in self.exchanges:
            return
        if if_unused and any(each[0] == name for each in self.bindings):
            raise ModelError("PreconditionError")
        del self.exchanges[name]
        self.drop([each for each in self.bindings if each[0] == name or each[1:3] == ("exchange", name)])

    def bind(self, source: str, kind: str, name: str, key: str, arguments: dict[str, Any], peer: str) -> None:
        if source not in self.exchanges or name not in (self.queues if kind == "queue" else self.exchanges):
            raise ModelError("NotFoundError")
        if kind == "queue" and self.queues[name].owner not in (None, peer):
            raise ModelError("LockedError")
        if (source, kind, name, key, arguments) not in self.bindings:
            self.bindings.append((source, kind, name, key, arguments))

    def unbind(
        self, source: str, kind: str, name: str, key: str, arguments: dict[str, Any], peer: str
    ) -> None:
        binding = (source, kind, name, key, arguments)
        if binding in self.bindings:
            if kind == "queue" and self.queues[name].owner not in (None, peer):
                raise ModelError("LockedError")
            self.drop([binding])

    def drop(self, gone: list[tuple[str, str, str, str, dict[str, Any]]]) -> None:
        self.bindings = [each for each in self.bindings if each not in gone]
        for source in {each[0] for each in gone}:
            exchange = self.exchanges.get(source)
            if exchange and exchange.auto_delete and not any(each[0] == source for each in self.bindings):
                self.delete_exchange(source, False)

    def disown(self, peer: str) -> None:
        for name in [name for name, queue in self.queues.items() if queue.owner == peer]:
            self.delete_queue(name, peer)

    def route(self, exchange: str, keys: list[str], headers: dict[str, Any]) -> set[str]:
        if not exchange:
            return {key for key in keys if key in self.queues}
        found: set[str] = set()
        todo, seen = [exchange], {exchange}
        while todo:
            name = todo.pop()
            kind = self.exchanges[name].kind
            hit = [each for each in self.bindings if each[0] == name and self.fits(kind, each, keys, headers)]
            found |= {each[2] for each in hit if each[1] == "queue"}
            further = {each[2] for each in hit if each[1] == "exchange"}
            alternate = self.exchanges[name].alternate
            if not hit and alternate in self.exchanges:
                further = {alternate} if alternate else set()
            todo += further - seen
            seen |= further
        return found

    def fits(
        self,
        kind: str,
        binding: tuple[str, str, str, str, dict[str, Any]],
        keys: list[str],
        headers: dict[str, Any],
    ) -> bool:
        if kind == "fanout":
            return True
        if kind == "headers":
            return fits_headers(binding[4], headers)
        return any(binding[3] == key if kind == "direct" else fits_topic(binding[3], key) for key in keys)
