"""What each operation does, row by row: names, declarations, arguments, deletions, bindings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.container.broker.helpers import Connection, broker, names, no_headers
from trio_amqp10.container.broker.broker_queue import BrokerQueue
from trio_amqp10.container.broker.faults import (
    AccessRefusedError,
    BrokerError,
    InequivalentError,
    LockedError,
    NotFoundError,
    PreconditionError,
    UnsupportedError,
)
from trio_amqp10.container.broker.routing import further_keys
from trio_amqp10.container.broker.topology import Topology
from trio_amqp10.container.container import Container
from trio_amqp10.container.nodes.clock import Clock
from trio_amqp10.container.protocols.amqp10.native_message import content_of_message
from trio_amqp10.message import Message
from trio_amqp10.wire.values import UInt

if TYPE_CHECKING:
    from trio.testing import MockClock

ONE: Any = Connection()
OTHER: Any = Connection()


def hold(queue: Any, count: int = 1) -> None:
    for _ in range(count):
        queue.put(content_of_message(Message("x")), None)


class Consumer(SimpleNamespace):
    """As much of an outlet as a queue asks for when it comes and goes."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def outlet() -> Any:
    return Consumer(
        copying=False,
        wants=None,
        key=object(),
        peer=ONE,
        subscription_terms=SimpleNamespace(priority=0),
        max_message_size=None,
    )


# Queues -----------------------------------------------------------------------------------------


def test_line_feeds_in_names_are_dropped_at_declare_and_delete() -> None:
    them = broker()
    them.declare_queue("a\r\nb")
    them.declare_exchange("e\n")
    assert list(them.queues) == ["ab"]
    assert "e" in them.exchanges
    assert them.check_queue("a\nb") is them.queues["ab"]
    assert them.check_exchange("e\r") is them.exchanges["e"]
    hold(them.queues["ab"])
    assert them.delete_queue("\nab") == 1
    them.delete_exchange("\re")
    assert (list(them.queues), "e" in them.exchanges) == ([], False)


def test_queue_without_a_name_gets_one() -> None:
    them = broker()
    (one, _), (other, _) = them.declare_queue(""), them.declare_queue("")
    assert isinstance(one, BrokerQueue)
    assert one.name.startswith("amq.gen-")
    assert len(one.name) == len("amq.gen-") + 22
    assert one is not other
    assert them.declare_queue(one.name) == (one, False), "to declare again what is there is fine"


@pytest.mark.parametrize(
    ("arguments", "again", "argument"),
    [
        ({"durable": False}, {}, "durable"),
        ({}, {"auto_delete": True}, "auto_delete"),
        ({}, {"arguments": {"x-max-length": 1}}, "x-max-length"),
        ({"arguments": {"x-max-length": 1}}, {}, "x-max-length"),
        ({"arguments": {"x-max-length": 1}}, {"arguments": {"x-max-length": 2}}, "x-max-length"),
        ({"arguments": {"x-queue-mode": "lazy"}}, {"arguments": {}}, "x-queue-mode"),
        ({}, {"arguments": {"x-queue-type": "quorum"}}, "x-queue-type"),
    ],
)
def test_queue_is_not_equivalent_when_a_property_differs(
    arguments: dict[str, Any], again: dict[str, Any], argument: str
) -> None:
    them = broker()
    queue, made = them.declare_queue("q", **arguments)
    assert made
    with pytest.raises(InequivalentError, match=f"inequivalent arg '{argument}' for queue 'q'") as fault:
        them.declare_queue("q", **again)
    assert (fault.value.argument, fault.value.kind, fault.value.name) == (argument, "queue", "q")
    assert them.declare_queue("q", **arguments) == (queue, False)


def test_queue_is_equivalent_when_numbers_are_equal_and_the_rest_is_not_known() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", {"x-max-length": 5, "x-odd": 1})
    assert them.declare_queue("q", {"x-max-length": UInt(5), "x-queue-type": "classic"}) == (queue, False)


def test_reserved_names_can_be_declared_only_when_they_are_there() -> None:
    them = broker()
    for attempt in (lambda: them.declare_queue("amq.q"), lambda: them.declare_exchange("amq.mine")):
        with pytest.raises(AccessRefusedError, match="amq"):
            attempt()
    assert them.declare_exchange("amq.topic", "topic")[1] is False
    with pytest.raises(InequivalentError, match=r"'type' for exchange 'amq\.topic'"):
        them.declare_exchange("amq.topic", "fanout")
    assert them.check_exchange("amq.topic").kind == "topic"


def test_passive_declaration_compares_nothing_and_finds_what_is_there() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", {"x-max-length": 1}, durable=False)
    assert them.check_queue("q") is queue
    with pytest.raises(NotFoundError, match="no queue 'other'"):
        them.check_queue("other")
    with pytest.raises(NotFoundError, match="no exchange 'other'"):
        them.check_exchange("other")


def test_exclusive_queue_is_for_its_connection_alone() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", exclusive=True, peer=ONE)
    them.bind("amq.fanout", "queue", "q", peer=ONE)
    for attempt in (
        lambda: them.declare_queue("q", exclusive=True, peer=OTHER),
        lambda: them.declare_queue("q", peer=OTHER),
        lambda: them.declare_queue("q", peer=ONE),
        lambda: them.check_queue("q", OTHER),
        lambda: them.delete_queue("q", peer=OTHER),
        lambda: them.purge_queue("q", peer=OTHER),
        lambda: them.bind("amq.fanout", "queue", "q", "k", peer=OTHER),
        lambda: them.unbind("amq.fanout", "queue", "q", peer=OTHER),
    ):
        with pytest.raises(LockedError):
            attempt()
    with pytest.raises(LockedError):
        queue.check_outlet(OTHER, copying=False, target=None, subscription_terms=None)  # type: ignore[arg-type]
    them.unbind("amq.fanout", "queue", "q", "not there", peer=OTHER)
    assert names(them, "amq.fanout", "") == ["q"], "all may publish to it"
    assert them.declare_queue("q", {"x-odd": 1}, exclusive=True, peer=ONE) == (queue, False)
    them.declare_queue("for all", peer=ONE)
    with pytest.raises(LockedError, match="not exclusive"):
        them.declare_queue("for all", exclusive=True, peer=ONE)
    them.disown(OTHER)
    assert "q" in them.queues
    them.disown(ONE)
    assert list(them.queues) == ["for all"]
    assert not list(them.bindings)


def test_exclusive_is_asked_before_all_other_properties() -> None:
    them = broker()
    them.declare_queue("q", exclusive=True, peer=ONE)
    with pytest.raises(LockedError):
        them.declare_queue("q", {"x-max-length": 1}, durable=False, exclusive=True, peer=OTHER)


def test_auto_delete_queue_goes_with_its_last_consumer_if_it_had_one() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", auto_delete=True)
    them.bind("amq.fanout", "queue", "q")
    one, other = outlet(), outlet()
    queue.add_outlet(one)
    queue.add_outlet(other)
    queue.remove_outlet(one)
    assert "q" in them.queues
    queue.remove_outlet(other)
    assert "q" not in them.queues
    assert not list(them.bindings)


def test_queue_is_deleted_unless_it_is_used_or_not_empty() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    assert them.delete_queue("not there", if_unused=True, if_empty=True) == 0
    hold(queue, 2)
    with pytest.raises(PreconditionError, match="not empty"):
        them.delete_queue("q", if_empty=True)
    consumer = outlet()
    queue.add_outlet(consumer)
    with pytest.raises(PreconditionError, match="in use"):
        them.delete_queue("q", if_unused=True)
    queue.remove_outlet(consumer)
    assert them.delete_queue("q", if_unused=True) == 2
    assert "q" not in them.queues


def test_purge_counts_what_was_ready_and_needs_a_queue() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    hold(queue, 3)
    assert (them.purge_queue("q"), len(queue)) == (3, 0)
    with pytest.raises(NotFoundError):
        them.purge_queue("other")


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-message-ttl": -1},
        {"x-message-ttl": "1"},
        {"x-message-ttl": True},
        {"x-max-length": -1},
        {"x-max-length": 1.5},
        {"x-max-length-bytes": -1},
        {"x-delivery-limit": -1},
        {"x-expires": 0},
        {"x-expires": -1},
        {"x-max-priority": 256},
        {"x-max-priority": -1},
        {"x-overflow": "odd"},
        {"x-overflow": 1},
        {"x-dead-letter-routing-key": "k"},
        {"x-dead-letter-exchange": 1},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 1},
        {"x-single-active-consumer": "yes"},
        {"x-queue-type": "odd"},
        {"x-queue-type": 1},
    ],
)
def test_arguments_that_are_not_valid_are_refused(arguments: dict[str, Any]) -> None:
    them = broker()
    with pytest.raises(PreconditionError):
        them.declare_queue("q", arguments)
    assert "q" not in them.queues


@pytest.mark.parametrize(
    ("name", "options"), [("q", {"durable": False}), ("q", {"exclusive": True, "peer": ONE}), ("", {})]
)
def test_quorum_queue_is_durable_shared_and_named_by_the_client(name: str, options: dict[str, Any]) -> None:
    them = broker()
    with pytest.raises(PreconditionError, match="quorum"):
        them.declare_queue(name, {"x-queue-type": "quorum"}, **options)
    assert them.declare_queue("quorum", {"x-queue-type": "quorum"})[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-queue-type": "stream"},
    ],
)
def test_arguments_that_cannot_be_met_are_refused_as_such(arguments: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        broker().declare_queue("q", arguments)


def test_arguments_become_the_policy_of_the_queue() -> None:
    them = broker()
    queue, _ = them.declare_queue(
        "q",
        {
            "x-max-length": 5,
            "x-max-length-bytes": 6,
            "x-message-ttl": 7,
            "x-overflow": "reject-publish",
            "x-dead-letter-exchange": "dead/e",
            "x-dead-letter-routing-key": "k",
            "x-delivery-limit": 2,
            "x-single-active-consumer": True,
        },
    )
    policy = queue.policy
    assert (policy.max_length, policy.max_octets, policy.ttl, policy.overflow) == (5, 6, 7, "reject")
    assert (policy.dead_letter, policy.delivery_limit, policy.single_active) == (
        "/exchanges/dead%2Fe/k",
        3,
        True,
    )
    plain = them.declare_queue("plain", {"x-dead-letter-exchange": ""})[0].policy
    assert (plain.overflow, plain.dead_letter, plain.delivery_limit) == ("drop-oldest", "plain", None)
    assert them.declare_queue("quorum", {"x-queue-type": "quorum"})[0].policy.delivery_limit == 21
    keeping = them.declare_queue("keeping", {"x-dead-letter-exchange": "e"})[0].policy
    assert keeping.dead_letter == "/exchanges/e"
    dlx = {"x-overflow": "reject-publish-dlx"}
    assert them.declare_queue("r", dlx)[0].policy.overflow == "reject-dead-letter"
    assert them.declare_queue("s", dlx | {"x-queue-type": "quorum"})[0].policy.overflow == "drop-oldest"


async def test_queue_that_is_not_used_goes_with_its_bindings(autojump_clock: MockClock) -> None:
    container = Container("c", strict=True)
    them = container.add_broker()
    arguments = {"x-expires": 1000}
    async with container.connect():
        them.declare_queue("q", arguments)
        them.bind("amq.fanout", "queue", "q")
        await trio.sleep(0.7)
        them.declare_queue("q", arguments)
        await trio.sleep(0.7)
        them.check_queue("q")
        await trio.sleep(0.7)
        assert "q" in them.queues, "to declare it is to use it"
        await trio.sleep(0.7)
        assert not them.queues
        assert not list(them.bindings)
        assert "q" not in container.nodes


def test_queue_of_the_program_is_declared_as_what_it_is() -> None:
    container = Container("c", strict=True)
    queue = container.add_queue("mine", max_length=3, overflow="reject")
    container.add_topic("topic")
    them = Topology(container, Clock())
    right = {"x-max-length": 3, "x-overflow": "reject-publish"}
    assert them.declare_queue("mine", right, durable=False) == (queue, False)
    assert them.check_queue("mine") is queue
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (right, {"durable": True}, "durable"),
        (right, {"durable": False, "auto_delete": True}, "auto_delete"),
        ({"x-max-length": 4, "x-overflow": "reject-publish"}, {"durable": False}, "x-max-length"),
        ({"x-max-length": 3}, {"durable": False}, "x-overflow"),
        (right | {"x-expires": 1}, {"durable": False}, "x-expires"),
        (right | {"x-max-priority": 1}, {"durable": False}, "x-max-priority"),
    ]
    for arguments, options, argument in cases:
        with pytest.raises(InequivalentError) as fault:
            them.declare_queue("mine", arguments, **options)
        assert fault.value.argument == argument
    with pytest.raises(LockedError):
        them.declare_queue("mine", right, durable=False, exclusive=True, peer=ONE)
    for attempt in (lambda: them.declare_queue("topic"), lambda: them.check_queue("topic")):
        with pytest.raises(LockedError, match="no queue"):
            attempt()
    them.bind("amq.direct", "queue", "mine", "k")
    assert names(them, "amq.direct", "k") == names(them, "", "mine") == ["mine"]
    assert names(them, "", "topic") == []
    container.remove_node("mine")
    assert names(them, "amq.direct", "k") == []
    them.declare_queue("mine")
    assert names(them, "amq.direct", "k") == [], "a new queue has no bindings of an old one"


def test_queue_that_the_container_removes_is_forgotten() -> None:
    container = Container("c", strict=True)
    them = Topology(container, Clock())
    them.declare_queue("q")
    them.declare_exchange("e")
    them.bind("e", "queue", "q")
    container.remove_node("q")
    assert (list(them.queues), list(them.bindings)) == ([], [])
    container.remove_node("/exchanges/e")
    assert "e" not in them.exchanges


# Exchanges --------------------------------------------------------------------------------------


def test_exchanges_are_there_from_the_start() -> None:
    assert {name: each.kind for name, each in broker().exchanges.items()} == {
        "": "direct",
        "amq.direct": "direct",
        "amq.fanout": "fanout",
        "amq.topic": "topic",
        "amq.headers": "headers",
        "amq.match": "headers",
    }


def test_default_exchange_cannot_be_changed_and_leads_to_every_queue() -> None:
    them = broker()
    them.declare_queue("q")
    for attempt in (
        lambda: them.declare_exchange(""),
        lambda: them.check_exchange(""),
        lambda: them.delete_exchange(""),
        lambda: them.bind("", "queue", "q"),
        lambda: them.unbind("", "queue", "q"),
        lambda: them.bind("amq.fanout", "exchange", ""),
        lambda: them.unbind("amq.fanout", "exchange", ""),
    ):
        with pytest.raises(AccessRefusedError, match="operation not permitted on the default exchange"):
            attempt()
    assert names(them, "", "q") == ["q"]
    assert names(them, "", "other") == []


@pytest.mark.parametrize(
    ("again", "argument"),
    [
        ({"kind": "fanout"}, "type"),
        ({"durable": False}, "durable"),
        ({"auto_delete": True}, "auto_delete"),
        ({"internal": True}, "internal"),
        ({"arguments": {"alternate-exchange": "a"}}, "alternate-exchange"),
    ],
)
def test_exchange_is_not_equivalent_when_a_property_differs(again: dict[str, Any], argument: str) -> None:
    them = broker()
    exchange, made = them.declare_exchange("e")
    assert made
    with pytest.raises(InequivalentError, match=f"inequivalent arg '{argument}' for exchange 'e'"):
        them.declare_exchange("e", **again)
    assert them.declare_exchange("e", arguments={"x-odd": 1}) == (exchange, False)


@pytest.mark.parametrize("options", [{"kind": "x-odd"}, {"arguments": {"alternate-exchange": 1}}])
def test_exchange_of_no_known_type_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(PreconditionError):
        broker().declare_exchange("e", **options)


def test_exchange_is_deleted_unless_it_is_used_or_reserved() -> None:
    them = broker()
    them.delete_exchange("not there")
    with pytest.raises(AccessRefusedError):
        them.delete_exchange("amq.topic")
    them.declare_exchange("e")
    them.declare_exchange("f")
    them.bind("e", "exchange", "f")
    with pytest.raises(PreconditionError, match="in use"):
        them.delete_exchange("e", if_unused=True)
    them.delete_exchange("f", if_unused=True)
    assert not list(them.bindings), "a binding goes with its destination"
    them.delete_exchange("e", if_unused=True)
    assert "e" not in them.exchanges


def test_what_is_used_is_deleted_where_nobody_asks() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    them.declare_exchange("e")
    them.bind("e", "queue", "q")
    consumer: Any = outlet()
    ended: list[Any] = []
    consumer.close = lambda *why: ended.append(why)
    queue.add_outlet(consumer)
    hold(queue, 2)
    them.delete_exchange("e")
    assert them.delete_queue("q") == 2
    assert len(ended) == 1
    assert not {"e"} & them.exchanges.keys()
    assert not {"q"} & them.queues.keys()


def test_auto_delete_exchange_goes_with_the_last_binding_it_is_the_source_of() -> None:
    them = broker()
    them.declare_queue("q")
    for name in ("e", "f"):
        them.declare_exchange(name, auto_delete=True)
    them.bind("e", "exchange", "f")
    them.bind("f", "queue", "q", "a")
    them.bind("f", "queue", "q", "b")
    them.unbind("f", "queue", "q", "a")
    assert "f" in them.exchanges
    them.unbind("f", "queue", "q", "b")
    assert not {"e", "f"} & them.exchanges.keys(), "and that of its source with it"


def test_internal_exchange_refuses_publishers() -> None:
    them = broker()
    exchange, _ = them.declare_exchange("e", internal=True)
    with pytest.raises(AccessRefusedError, match="internal"):
        exchange.check_publish()
    them.declare_queue("q")
    them.bind("amq.fanout", "exchange", "e")
    them.bind("e", "queue", "q")
    assert names(them, "amq.fanout", "") == ["q"]


def test_exchange_that_is_not_there_cannot_be_published_to() -> None:
    with pytest.raises(NotFoundError, match="no exchange 'e'"):
        broker().get_exchange("e")


# Bindings ---------------------------------------------------------------------------------------


def test_binding_needs_both_ends_and_unbinding_none() -> None:
    them = broker()
    them.declare_queue("q")
    for source, kind, name in (
        ("e", "queue", "q"),
        ("amq.direct", "queue", "other"),
        ("amq.direct", "exchange", "e"),
    ):
        with pytest.raises(NotFoundError):
            them.bind(source, kind, name)  # type: ignore[arg-type]
        them.unbind(source, kind, name)  # type: ignore[arg-type]


def test_duplicate_bindings_are_one_and_arguments_tell_them_apart() -> None:
    them = broker()
    them.declare_queue("q")
    for arguments in ({}, {}, {"a": 1}, {"a": UInt(1)}, {"a": 2}):
        them.bind("amq.direct", "queue", "q", "k", arguments)
    assert [each.arguments for each in them.bindings] == [{}, {"a": 1}, {"a": 2}]
    assert names(them, "amq.direct", "k") == ["q"]
    them.unbind("amq.direct", "queue", "q", "k")
    assert names(them, "amq.direct", "k") == ["q"]
    for number in (1, 2):
        them.unbind("amq.direct", "queue", "q", "k", {"a": number})
    assert names(them, "amq.direct", "k") == []


def test_direct_compares_keys_and_fanout_nothing() -> None:
    them = broker()
    for name in ("q", "r"):
        them.declare_queue(name)
        them.bind("amq.direct", "queue", name, name)
        them.bind("amq.fanout", "queue", name, name)
    assert names(them, "amq.direct", "q") == ["q"]
    assert names(them, "amq.direct", "Q") == []
    assert names(them, "amq.fanout", "any") == ["q", "r"]


def test_headers_need_a_valid_x_match_on_headers_exchanges_only() -> None:
    them = broker()
    them.declare_queue("q")
    for match in ("most", 1, None):
        with pytest.raises(PreconditionError, match="x-match"):
            them.bind("amq.headers", "queue", "q", "", {"x-match": match})
    them.bind("amq.direct", "queue", "q", "", {"x-match": "most"})


@pytest.mark.parametrize(
    ("arguments", "headers", "reached"),
    [
        ({}, {}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": UInt(2), "c": 3}, True),
        ({"a": 1, "b": 2, "x-match": "any"}, {"b": 2}, True),
        ({"a": None}, {"a": "anything"}, True),
        ({"a": None}, {}, False),
        ({"a": "text"}, {"a": b"text"}, True),
        ({"a": True}, {"a": 1}, False),
        ({"x-a": 1}, {}, True),
        ({"x-a": 1, "x-match": "all-with-x"}, {}, False),
        ({"x-a": 1, "x-match": "any"}, {"x-a": 1}, False),
        ({"x-a": 1, "x-match": "any-with-x"}, {"x-a": 1}, True),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}, True),
    ],
)
def test_headers_are_compared_by_value(
    arguments: dict[str, Any], headers: dict[str, Any], reached: bool
) -> None:
    them = broker()
    them.declare_queue("q")
    them.bind("amq.match", "queue", "q", "", arguments)
    assert names(them, "amq.match", "", headers=headers) == (["q"] if reached else [])


def test_headers_are_read_for_headers_exchanges_only() -> None:
    them = broker()
    them.declare_queue("q")
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers"):
        assert them.route(them.exchanges[exchange], ["k"], no_headers) == []
    them.bind("amq.headers", "queue", "q")
    with pytest.raises(AssertionError, match="were read"):
        names(them, "amq.headers", "k")


# Routing ----------------------------------------------------------------------------------------


def test_exchanges_in_a_circle_are_followed_once_and_a_queue_gets_one_copy() -> None:
    them = broker()
    them.declare_queue("q")
    for name in ("e", "f"):
        them.declare_exchange(name, "fanout")
        them.bind(name, "queue", "q")
    them.bind("e", "exchange", "f")
    them.bind("f", "exchange", "e")
    them.bind("e", "exchange", "e")
    assert names(them, "e", "k") == ["q"]


def test_alternate_exchange_gets_what_matches_no_binding_once() -> None:
    them = broker()
    for name in ("q", "lost"):
        them.declare_queue(name)
    them.declare_exchange("e", arguments={"alternate-exchange": "f"})
    them.declare_exchange("f", "topic", arguments={"alternate-exchange": "e"})
    assert names(them, "e", "k") == [], "two alternates in a circle end"
    them.bind("e", "queue", "q", "k")
    them.bind("f", "queue", "lost", "#")
    assert names(them, "e", "k") == ["q"]
    assert names(them, "e", "other") == ["lost"], "with its own key"
    them.declare_exchange("empty", "fanout")
    them.bind("e", "exchange", "empty", "there")
    assert names(them, "e", "there") == [], "a binding matched, though no queue is behind it"
    them.delete_exchange("f")
    assert names(them, "e", "other") == []


def test_default_exchange_as_an_alternate_leads_to_the_queue_of_the_key() -> None:
    them = broker()
    them.declare_queue("q")
    them.declare_exchange("e", arguments={"alternate-exchange": ""})
    assert names(them, "e", "q") == ["q"]


def test_copies_are_further_routing_keys() -> None:
    them = broker()
    for name in ("a", "b", "c"):
        them.declare_queue(name)
    keys = further_keys({"CC": ["b", "b"], "BCC": ["c"], "other": 1})
    assert keys == ("b", "b", "c")
    assert names(them, "", "a", *keys) == ["a", "b", "c"]
    assert further_keys({}) == ()
    for headers in ({"CC": "b"}, {"BCC": [1]}, {"CC": {"a": "b"}}, {"BCC": None}):
        with pytest.raises(PreconditionError, match=r"array of strings|has strings"):
            further_keys(headers)


def test_broker_fault_has_its_condition() -> None:
    assert {fault("x").condition for fault in BrokerError.__subclasses__()} == {
        "amqp:not-found",
        "amqp:unauthorized-access",
        "amqp:resource-locked",
        "amqp:precondition-failed",
        "amqp:not-implemented",
    }
