"""Rules as arguments of RabbitMQ: what comes back from the arguments is the rule, or is listed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.broker.exchanges.arguments import check_arguments, policy_of
from trio_amqp10.broker.nodes.policy import QueuePolicy
from trio_amqp10.tools.cli.migrate.differences import differences_of_arguments, translate

RULES = st.fixed_dictionaries(
    {},
    optional={
        "max-length": st.integers(1, 9),
        "max-octets": st.integers(1, 9),
        "ttl": st.integers(0, 9),
        "expires": st.integers(1, 9).map(float),
        "max-priority": st.integers(0, 255),
        "overflow": st.sampled_from(["wait", "reject", "reject-dead-letter", "drop-oldest"]),
        "dead-letter": st.sampled_from(["dead", "/exchanges/e", "/exchanges/e/a%2Fb"]),
        "delivery-limit": st.integers(1, 9),
        "single-active": st.booleans(),
        "exclusive": st.booleans(),
        "grouped": st.booleans(),
        "bound": st.sampled_from(["held", "ready"]),
        "redelivery-delay": st.just(1.5),
        "durable": st.just(True),
    },
)


@given(RULES)
def test_rule_comes_back_from_its_argument_or_is_a_difference(rules: dict[str, Any]) -> None:
    arguments, differences = translate("orders", rules)
    check_arguments(arguments, "orders", like_rabbitmq=True)
    back = policy_of("orders", arguments, str)
    listed = {each.rule.partition("=")[0] for each in differences}
    assert all(each.what == "queue orders" for each in differences)
    before = QueuePolicy(
        **{name.replace("-", "_"): value for name, value in rules.items() if name != "durable"}
    )
    for name in ("max_length", "max_octets", "ttl", "expires", "dead_letter", "delivery_limit"):
        assert getattr(back, name) == getattr(before, name)
    for name in ("max_priority", "grouped", "exclusive", "redelivery_delay"):
        assert getattr(back, name) == getattr(before, name) or name.replace("_", "-") in listed
    assert back.single_active == (before.single_active or before.exclusive)
    if before.is_bounded:
        assert back.overflow == before.overflow or "overflow" in listed
        assert back.bound == before.bound or "bound" in listed


def test_plain_queue_without_priorities_has_no_difference() -> None:
    assert translate("q", {"max-priority": 0}) == ({"x-queue-type": "classic"}, [])


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ({}, "queue q: max-priority=any: priorities are ignored, as with max-priority=0"),
        (
            {"max-priority": 3},
            "queue q: max-priority=3: a message without a priority has the lowest one, not 4",
        ),
        (
            {"max-priority": 0, "durable": True},
            "queue q: durable=true: messages that are not durable are lost when RabbitMQ restarts",
        ),
        (
            {"max-priority": 0, "max-length": 1, "bound": "ready"},
            "queue q: overflow=wait: a full queue rejects messages; their senders do not wait",
        ),
    ],
)
def test_difference_says_the_queue_the_rule_and_what_happens(rules: dict[str, Any], line: str) -> None:
    assert [str(each) for each in translate("q", rules)[1]] == [line]


def test_arguments_without_effect_in_a_container_are_differences() -> None:
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 3,
        "x-queue-leader-locator": "random",
        "x-odd": 1,
    }
    assert [str(each) for each in differences_of_arguments("q", arguments)] == [
        "queue q: x-queue-leader-locator=random: it has no effect",
        "queue q: x-odd=1: it has no effect",
    ]
    assert [str(each) for each in differences_of_arguments("s", {"x-queue-type": "stream"})] == [
        "queue s: x-queue-type=stream: a stream is not migrated"
    ]
