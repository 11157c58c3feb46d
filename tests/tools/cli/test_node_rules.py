"""Rules of nodes, quotas and limits as they are written on the command line."""

from __future__ import annotations

import inspect
import re
from typing import Any

import click
import pytest

from trio_amqp10 import Container, QueuePolicy
from trio_amqp10.broker.nodes.policy import QUEUE_RULES
from trio_amqp10.broker.nodes.topic import TOPIC_RULES
from trio_amqp10.container.management.management_node import operations_of
from trio_amqp10.tools.cli.node_rules import (
    parse_dialect,
    parse_limit,
    parse_memory_limit,
    parse_queue,
    parse_quota,
    parse_size,
    parse_topic,
    quotas_of,
)

from .conftest import (
    amqp10,
)

TYPES = {"count": "int", "octets": "int", "milliseconds": "int", "address": "str", "flag": "bool"}


def test_rules_of_the_command_line_and_of_management_are_the_arguments_of_add_queue() -> None:
    arguments = inspect.signature(Container.add_queue).parameters
    rules = {rule.name: rule for rule in QUEUE_RULES}
    assert list(rules) == [name for name in arguments if name not in ("self", "name")]
    for name, rule in rules.items():
        assert arguments[name].default == rule.default, name
        if rule.kind != "choice":
            assert arguments[name].annotation.removesuffix(" | None") == TYPES.get(rule.kind, "float"), name
    described = " ".join(amqp10("serve", "--help").stdout.decode().split())
    for rule in QUEUE_RULES:
        assert f"{rule.option}=" in described
        assert f"{rule.help[1:]}." in described
    assert operations_of("queue")["CREATE"] == [rule.option for rule in QUEUE_RULES]


SAMPLES = {
    "count": ("7", 7),
    "octets": ("64KiB", 65_536),
    "milliseconds": ("1500", 1500),
    "seconds": ("0.5", 0.5),
    "factor": ("1.5", 1.5),
    "address": ("dead", "dead"),
    "flag": ("true", True),
}


@pytest.mark.parametrize("rule", QUEUE_RULES, ids=[rule.option for rule in QUEUE_RULES])
def test_value_of_a_rule_is_read_or_named_with_what_is_expected(rule: Any) -> None:
    text, value = SAMPLES.get(rule.kind) or (rule.choices[1], rule.choices[1])
    assert parse_queue(f"q,{rule.option}={text}") == ("q", {rule.name: value})
    if rule.kind == "address":
        return
    with pytest.raises(Exception, match=rf"^{rule.option}='\$': expected .") as refused:
        parse_queue(f"q,{rule.option}=$")
    for choice in rule.choices:
        assert choice in str(refused.value)


def test_policy_is_made_of_the_rules() -> None:
    assert QueuePolicy(**{rule.name: rule.default for rule in QUEUE_RULES if rule.name != "durable"})


@pytest.mark.parametrize(
    ("dialect", "why"),
    [
        ("0-8", "'0-8' is not a dialect"),
        ("0-9-1,vhost=x", "'vhost=x' is not an option"),
        ("0-9-1,heartbeat=often", "heartbeat='often'"),
        ("0-9-1,frame-max=1", "frame_max=1: expected 4096"),
        ("0-9-1,frame-max=none", "frame-max='none': expected octets"),
        ("0-9-1,no-local=perhaps", "no-local='perhaps'"),
        ("all,no-local", "only the dialect 0-9-1 has options"),
    ],
)
def test_serve_says_what_is_wrong_with_a_dialect(dialect: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        parse_dialect(dialect)


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (",max-length=1", "names no queue"),
        ("q,size=1", "'size=1' is not a rule"),
        ("q,max-length=many", "max-length='many': expected a whole number"),
        ("q,max-octets=none", "max-octets='none': expected octets"),
        ("q,ttl=5s", "ttl='5s': expected a whole number of milliseconds"),
        ("q,grouped=perhaps", "grouped='perhaps': expected true or false"),
        ("q,max-length=0", "max-length=0: expected at least 1"),
        (
            "q,overflow=flood",
            "overflow='flood': expected one of wait, reject, reject-dead-letter, drop-oldest",
        ),
        ("q,redelivery-delay=soon", "redelivery-delay='soon'"),
        ("q,redelivery-delay=nan", "more than 0 seconds"),
    ],
)
def test_serve_says_what_is_wrong_with_a_rule(queue: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        parse_queue(queue)


def test_limits_of_a_topic_are_the_arguments_of_the_container() -> None:
    arguments = list(inspect.signature(Container.add_topic).parameters.values())[2:]
    assert [(rule.name, rule.default) for rule in TOPIC_RULES] == [
        (each.name, each.default) for each in arguments
    ]


def test_serve_takes_limits_of_a_topic() -> None:
    assert parse_topic("prices") == ("prices", {})
    assert parse_topic("prices,max-backlog=5,overflow=drop-oldest,max-subscriptions=7") == (
        "prices",
        {"max_backlog": 5, "overflow": "drop-oldest", "max_subscriptions": 7},
    )


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "'' names no topic; write NAME"),
        (
            "t,size=1",
            "'size=1' is not a rule of a topic; the rules are max-backlog, max-subscriptions, overflow",
        ),
        ("t,max-backlog=many", "max-backlog='many': expected a whole number"),
        ("t,max-subscriptions=0", "max-subscriptions=0: expected at least 1"),
        ("t,overflow=flood", "overflow='flood': expected one of detach, drop-oldest, reject, wait"),
    ],
)
def test_serve_says_what_is_wrong_with_a_limit_of_a_topic(topic: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        parse_topic(topic)


def test_serve_takes_delays_in_parts_of_seconds() -> None:
    name, rules = parse_queue("q,redelivery-delay=0.5,redelivery-delay-multiplier=2,max-redelivery-delay=60")
    assert (name, rules) == (
        "q",
        {"redelivery_delay": 0.5, "redelivery_delay_multiplier": 2, "max_redelivery_delay": 60},
    )


@pytest.mark.parametrize(
    ("quota", "why"),
    [
        ("links", "links='': expected a number of at least 1"),
        ("ada:links=0", "links='0': expected a number of at least 1"),
        ("cheese=3", "'cheese=3' is not a quota"),
        ("ada:node-senders=3", "cannot be set for one user"),
    ],
)
def test_serve_says_what_is_wrong_with_a_quota(quota: str, why: str) -> None:
    with pytest.raises(click.BadParameter, match=re.escape(why)):
        quotas_of([parse_quota(quota)])


def test_limits_are_numbers_or_none() -> None:
    assert (parse_memory_limit("auto"), parse_memory_limit("1KiB"), parse_memory_limit("none")) == (
        "auto",
        1024,
        None,
    )
    assert (parse_limit("3"), parse_limit("none")) == (3, None)
    assert [parse_size(each) for each in ("7", "2KiB", "512MiB", "3GiB", "none")] == [
        7,
        2 * 1024,
        512 * 1024**2,
        3 * 1024**3,
        None,
    ]


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1MB", "MiB", "0KiB", "1.5GiB", "1KiBKiB"])
def test_serve_says_what_is_wrong_with_a_limit(value: str) -> None:
    for parse in (parse_limit, parse_size):
        with pytest.raises(click.BadParameter, match="or none"):
            parse(value)
