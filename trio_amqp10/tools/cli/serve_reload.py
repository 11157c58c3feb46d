"""Changes of a container by SIGHUP: users, rights, quotas, queues and topics.

Everything is read and checked before anything is changed. What cannot be changed is reported, and needs a restart. Knows no click.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from trio_amqp10.broker.nodes.node import label
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.topic import TOPIC_RULES, Topic
from trio_amqp10.core.errors import LocalProtocolError

from .command_runner import CommandError
from .node_rules import limits_of, policy_of
from .rights_file import ReplaceableRules
from .serve_options import SERVE_OPTIONS

if TYPE_CHECKING:
    import trio_amqp10 as amqp
    from trio_amqp10.broker.nodes.policy import QueuePolicy

    from .serve import ServeOptions

_APPLIED: Final = frozenset({"users", "users_file", "rights", "quotas", "queues", "topics"})
_MOST: Final = 20
"""The most queues to report one by one."""


class _Change(NamedTuple):
    """A queue to make, or to change to these rules."""

    name: str
    rules: dict[str, Any]
    policy: QueuePolicy
    node: Queue | None


def apply(container: amqp.Container, old: ServeOptions, new: ServeOptions) -> list[str]:
    """Change a container to the new options; return lines about it for people.

    Raises:
        CommandError: a queue or a topic cannot be made or changed; nothing has changed.
        StoreError: the store cannot be read for a new queue or topic; only queues and topics before it have changed.
    """
    changed: list[str] = []
    restart = [
        option.key
        for option in SERVE_OPTIONS
        if option.name not in _APPLIED and getattr(old, option.name) != getattr(new, option.name)
    ]
    queues, later = _queue_changes(container, old, new)
    topics = _topic_changes(container, old, new)
    made = [*_change_queues(container, queues), *_change_topics(container, topics)]
    if old.quotas != new.quotas:
        if container.accounts is None or new.quotas is None:
            restart.append("quotas")
        else:
            container.accounts.replace(new.quotas)
            changed.append("quotas")
    if old.rights != new.rights:
        if isinstance(container.authorise, ReplaceableRules) and new.rights is not None:
            container.authorise.rules = new.rights.rules()
            container.review()
            changed.append("rights")
        else:
            restart.append("rights")
    if (old.users, old.users_file) != (new.users, new.users_file):
        changed.append("users")
    changed += made
    gone = [f"topic {topic}" for topic in dict(old.topics) if topic not in dict(new.topics)]
    lines = [f"changed: {', '.join(changed)}"] if changed else ["nothing else changed"]
    if restart:
        lines.append(f"needs a restart: {', '.join(restart)}")
    return lines + _few(
        [*later, *(f"{each} is no longer in the file, and stays until a restart" for each in gone)]
    )


def _queue_changes(
    container: amqp.Container, old: ServeOptions, new: ServeOptions
) -> tuple[list[_Change], list[str]]:
    """Return the queues to make or to change, and what is left as it is.

    Raises:
        CommandError: a queue cannot be made or changed.
    """
    before = dict(old.queues)
    wanted = dict(new.queues)
    todo: list[_Change] = []
    later = [
        f"queue {name} is no longer in the file, and stays until a restart"
        for name in before
        if name not in wanted
    ]
    for name, rules in wanted.items():
        node = container.nodes.get(name)
        if before.get(name) == rules and node is not None:
            continue
        if node is None and rules.get("durable") and container.journal is None:
            later.append(f"queue {name}: durable needs a restart")
            continue
        if node is not None and not isinstance(node, Queue):
            raise CommandError(f"queue {name}: the address is taken by {label(node)}")
        if node is not None and rules.get("durable") != before.get(name, {}).get("durable"):
            later.append(f"queue {name}: durable needs a restart")
        try:
            policy = policy_of(rules)
            if node is not None:
                node.check_update(policy)
        except click.BadParameter as wrong:
            raise CommandError(f"queue {name}: {wrong.message}") from None
        except LocalProtocolError as wrong:
            raise CommandError(f"queue {name}: {wrong}") from None
        todo.append(_Change(name, rules, policy, node))
    return todo, later


def _change_queues(container: amqp.Container, todo: list[_Change]) -> list[str]:
    changes: list[str] = []
    for name, rules, policy, node in todo:
        if node is None:
            container.add_queue(name, **rules)
            changes.append(f"queue {name} added")
            continue
        rows = [
            f"{each.name.replace('_', '-')} {_shown(getattr(node.policy, each.name))} -> {_shown(getattr(policy, each.name))}"
            for each in fields(policy)
            if getattr(node.policy, each.name) != getattr(policy, each.name)
        ]
        if rows:
            node.update(policy)
            changes.append(f"queue {name} ({', '.join(rows)})")
    return _few(changes)


def _topic_changes(
    container: amqp.Container, old: ServeOptions, new: ServeOptions
) -> list[tuple[str, dict[str, Any], Topic | None]]:
    """Return the topics to make or to change, with all their limits.

    Raises:
        CommandError: the address of a topic is taken by another node.
    """
    before = dict(old.topics)
    todo: list[tuple[str, dict[str, Any], Topic | None]] = []
    for name, given in dict(new.topics).items():
        node = container.nodes.get(name)
        if before.get(name) == given and node is not None:
            continue
        if node is not None and not isinstance(node, Topic):
            raise CommandError(f"topic {name}: the address is taken by {label(node)}")
        todo.append((name, limits_of(given), node))
    return todo


def _change_topics(
    container: amqp.Container, todo: list[tuple[str, dict[str, Any], Topic | None]]
) -> list[str]:
    changes: list[str] = []
    for name, limits, node in todo:
        if node is None:
            container.add_topic(name, **limits)
            changes.append(f"topic {name} added")
            continue
        rows = [
            f"{rule.option} {_shown(getattr(node, rule.name))} -> {limits[rule.name]}"
            for rule in TOPIC_RULES
            if getattr(node, rule.name) != limits[rule.name]
        ]
        if rows:
            node.update(**limits)
            changes.append(f"topic {name} ({', '.join(rows)})")
    return _few(changes)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _few(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"and {len(lines) - _MOST} more"]
