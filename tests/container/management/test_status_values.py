"""Statuses as values: there and back, and what is no status."""

from __future__ import annotations

import ast
import math
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.nodes.policy import QueuePolicy
from trio_amqp10.container.management import status
from trio_amqp10.container.management.status import (
    BindingStatus,
    NodeStatus,
    QueueStatus,
    StoreStatus,
    TopicStatus,
    UserStatus,
)
from trio_amqp10.container.management.status_values import (
    encodable,
    from_values,
    read_counts,
    read_message_figures,
    to_values,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBER = st.floats(allow_nan=False)
ARGUMENT = st.recursive(
    st.none() | st.booleans() | WHOLE | TEXT | st.binary(max_size=3) | st.decimals(allow_nan=False, places=2)
    | st.floats(allow_nan=False)
    | st.integers(0, 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXT,
    "bool": st.booleans(),
    "int": WHOLE,
    "float": NUMBER,
    "Mapping[str, Any]": st.dictionaries(TEXT, TEXT | WHOLE | st.none() | st.booleans(), max_size=2),
    "Mapping[str, int]": st.dictionaries(TEXT, WHOLE, max_size=2),
    "Mapping[Death, int]": st.dictionaries(st.sampled_from(["rejected", "expired"]), WHOLE),
    "tuple[str, ...]": st.lists(TEXT, max_size=2).map(tuple),
    "QueuePolicy": st.builds(QueuePolicy, max_length=st.none() | st.integers(1, 9), ttl=st.none() | st.just(5), expires=st.none() | st.just(0.5)),
}  # fmt: skip

STATUSES = [
    each
    for name, each in vars(status).items()
    if name.endswith("Status") and is_dataclass(each) and name != "MessageStatus"
]


@cache
def strategy_of(annotation: str) -> st.SearchStrategy[Any]:
    kind = annotation.removesuffix(" | None")
    if kind == "StoreStatus":
        found = statuses_of(StoreStatus)
    elif kind.startswith("Literal["):
        found = st.sampled_from(ast.literal_eval(kind.removeprefix("Literal")))
    else:
        found = KINDS[kind]
    return found if kind == annotation else st.none() | found


def statuses_of(cls: type) -> st.SearchStrategy[Any]:
    given: Any = fields(cls)
    made = {
        each.name: st.dictionaries(TEXT, ARGUMENT, max_size=2)
        if each.name == "arguments"
        else strategy_of(each.type)
        for each in given
    }
    return st.builds(cls, **made)


@pytest.mark.hypothesis
@pytest.mark.parametrize("cls", STATUSES, ids=lambda cls: str(cls.__name__))
@given(data=st.data())
def test_status_comes_back_from_a_message(cls: type, data: st.DataObject) -> None:
    made = data.draw(statuses_of(cls))
    values = Message.from_payload(Message(to_values(made)).to_payload()).body
    asked = NodeStatus if issubclass(cls, NodeStatus) else cls
    back = from_values(asked, {**values, "of-a-later-version": 1})
    assert (type(back), back) == (cls, made)


QUEUE = QueueStatus(
    address="q",
    kind="queue",
    senders=0,
    receivers=0,
    figures={},
    name="q",
    virtual_host="c",
    declared=False,
    durable=False,
    exclusive=False,
    owner=None,
    redirect=None,
    auto_delete=False,
    arguments={},
    rules=QueuePolicy(),
    depth=0,
    octets=0,
    ready=0,
    ready_octets=0,
    unacked=0,
    delayed=0,
    consumers=0,
    oldest=None,
    arrived=0,
    refused=0,
    delivered=0,
    acknowledged=0,
    redelivered=0,
    dead_letters={},
)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("depth", "3", "depth='3': expected a whole number"),
        ("depth", True, "depth=True: expected a whole number"),
        ("depth", None, "depth=None: expected a whole number"),
        ("oldest", "x", "oldest='x': expected a number"),
        ("oldest", False, "oldest=False: expected a number"),
        ("name", 3, "name=3: expected a string"),
        ("declared", 1, "declared=1: expected true or false"),
        ("figures", [], r"figures=\[\]: expected a map"),
        ("figures", {1: 1}, "figures=1: expected a string"),
        ("figures", {"a": "b"}, "figures a='b': expected a whole number"),
        ("arguments", {}, r"arguments=\{\}: expected a string"),
        ("arguments", "[]", r"arguments=\[\]: expected a map"),
        ("arguments", "{", "."),
        ("arguments", '{"a": {"$": 1}}', "arguments: "),
        ("arguments", '{"a": {"$": ["decimal", "x"]}}', "arguments: "),
        ("arguments", '{"a": {"$": ["time", 1e99]}}', "arguments: "),
        ("arguments", '{"a": {"$": ["table", 5]}}', "arguments: "),
        ("arguments", '{"a": ' + "[" * 100_000, "."),
        ("rules", 1, "a status is int: expected a map"),
        ("rules", {}, "max-length=nothing: expected a whole number"),
        ("rules", {**to_values(QueuePolicy()), "overflow": "x"}, "overflow='x': expected one of"),
        ("status", "node", "status='node': expected 'queue'"),
        ("status", 5, "status=5: expected a string"),
        ("status", [], r"status=\[\]: expected a string"),
    ],
)
def test_other_value_is_refused_with_its_name(name: str, value: Any, fault: str) -> None:
    values = to_values(QUEUE)
    assert from_values(QueueStatus, values) == QUEUE
    with pytest.raises(ValueError, match=fault):
        from_values(QueueStatus, {**values, name: value})
    del values[name]
    with pytest.raises(ValueError, match=r"nothing: expected|_Missing: expected"):
        from_values(QueueStatus, values)


def test_choice_and_list_are_checked() -> None:
    binding = BindingStatus(
        virtual_host="c", source="x", destination_kind="queue", destination="q", key="k", arguments={}
    )
    with pytest.raises(ValueError, match="destination-kind='topic': expected queue or exchange"):
        from_values(BindingStatus, {**to_values(binding), "destination-kind": "topic"})
    with pytest.raises(ValueError, match="status='queue': expected 'topic'"):
        from_values(TopicStatus, to_values(QUEUE))
    with pytest.raises(ValueError, match="listeners=1: expected a list"):
        from_values(status.ContainerStatus, {**dict.fromkeys(_NUMBERS, 0), **_OTHER, "listeners": 1})


_NUMBERS = ("octets", "refused-for-memory", "nodes", "working")
_OTHER: dict[str, Any] = {
    "name": "c",
    "throttled": False,
    "finishing": False,
    "memory-limit": None,
    "store": None,
    "connections": {},
    "totals": {},
    "refused": {},
}


def test_counts_and_figures_of_messages_are_read() -> None:
    assert read_counts("moved", {"q": 1}) == {"q": 1}
    figures = {"place": 0, "priority": 4, "octets": 1, "age": 0, "redelivered": False, "failures": 0, "expires": None, "died-in": None}  # fmt: skip
    assert read_message_figures({**figures, "message": b"x"}) == (
        {**{name.replace("-", "_"): value for name, value in figures.items()}, "age": 0.0},
        b"x",
    )
    strange: list[Any] = [{}, [], {**figures, "message": "x"}, {"message": b"x"}]
    for wrong in strange:
        with pytest.raises(ValueError, match="expected"):
            read_message_figures(wrong)


def test_whatever_another_protocol_has_becomes_encodable() -> None:
    deep: Any = 1
    for _ in range(40):
        deep = {"k": [deep]}
    value = {"a\udcff": Decimal("1.50"), "b": (b"\xff", math.inf, None, "ä"), "deep": deep}
    made = encodable(value)
    assert {name: made[name] for name in made if name != "deep"} == {
        "a\\udcff": "1.50",
        "b": [b"\xff", math.inf, None, "ä"],
    }
    assert Message.from_payload(Message([[[made]]]).to_payload()).body == [[[made]]]
    assert encodable(UserStatus) is UserStatus
    assert encodable([2**64, -(2**63) - 1, 2**64 - 1, True]) == [
        str(2**64),
        str(-(2**63) - 1),
        2**64 - 1,
        True,
    ]
