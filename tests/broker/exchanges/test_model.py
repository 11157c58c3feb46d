"""The broker does what the naive model does, whatever is declared, bound, unbound, deleted and published."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.scaled import scaled
from trio_amqp10.broker.exchanges.faults import BrokerError
from trio_amqp10.broker.exchanges.matchers import KINDS

from .helpers import Connection, broker
from .model import Model, ModelError, ModelExchange

KEYS = st.lists(st.sampled_from(["a", "b", ""]), max_size=5).map(".".join)
VALUES = st.sampled_from([None, 1, 2, 1.0, True, "a", b"a", "b", [1], {"a": 1}])
HEADERS = st.dictionaries(st.sampled_from(["a", "b", "x-a", "x-b"]), VALUES, max_size=3)
QUEUES = st.sampled_from(["q1", "q2", "q3"])
NAMES = st.sampled_from(["e1", "e2", "e3", "amq.topic", "amq.fanout", "amq.headers"])
PEERS = st.sampled_from(["one", "other"])
BINDINGS = st.tuples(
    NAMES,
    st.one_of(st.tuples(st.just("queue"), QUEUES), st.tuples(st.just("exchange"), NAMES)),
    st.sampled_from(["", "a", "a.b", "*", "#", "a.#", "#.b"]),
    st.sampled_from([{}, {"a": 1}, {"a": 1, "x-match": "any"}, {"x-match": "any"}]),
)


class Brokers(RuleBasedStateMachine):
    """The product and the model, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = broker()
        self.model = Model()
        self.peers: dict[str, Any] = {"one": Connection(), "other": Connection()}

    @initialize(
        kinds=st.lists(
            st.tuples(
                st.sampled_from(KINDS), st.booleans(), st.sampled_from([None, "e1", "e2", "amq.fanout"])
            ),
            min_size=3,
            max_size=3,
        ),
        owners=st.lists(st.sampled_from([None, None, "one"]), min_size=3, max_size=3),
        bindings=st.lists(BINDINGS, min_size=2, max_size=8),
    )
    def begin(self, kinds: list[Any], owners: list[str | None], bindings: list[Any]) -> None:
        """Some of everything, so that few steps are lost on what is not there."""
        for number, owner in enumerate(owners, 1):
            self.declare_queue(f"q{number}", True, False, owner is not None, {}, owner or "other")
        for number, (kind, auto_delete, alternate) in enumerate(kinds, 1):
            self.declare_exchange(f"e{number}", kind, True, auto_delete, False, alternate)
        for binding in bindings:
            self.bind(binding, "one")

    def both(self, product: Any, model: Any) -> None:
        """Both do it, or both refuse for the same reason."""
        expected = None
        try:
            model()
        except ModelError as fault:
            expected = str(fault)
        if expected is None:
            product()
            return
        with pytest.raises(BrokerError) as raised:
            product()
        assert type(raised.value).__name__ == expected

    @rule(
        name=QUEUES,
        durable=st.booleans(),
        auto_delete=st.booleans(),
        exclusive=st.sampled_from([False, False, True]),
        arguments=st.sampled_from([{}, {}, {"x-max-length": 5}, {"x-message-ttl": 1}, {"x-odd": 1}]),
        peer=PEERS,
    )
    def declare_queue(
        self,
        name: str,
        durable: bool,
        auto_delete: bool,
        exclusive: bool,
        arguments: dict[str, Any],
        peer: str,
    ) -> None:
        self.both(
            lambda: self.broker.declare_queue(
                name,
                arguments,
                durable=durable,
                auto_delete=auto_delete,
                exclusive=exclusive,
                peer=self.peers[peer],
            ),
            lambda: self.model.declare_queue(
                name, durable, auto_delete, peer if exclusive else None, arguments, peer
            ),
        )

    @rule(name=QUEUES, peer=PEERS)
    def delete_queue(self, name: str, peer: str) -> None:
        self.both(
            lambda: self.broker.delete_queue(name, peer=self.peers[peer]),
            lambda: self.model.delete_queue(name, peer),
        )

    @rule(
        name=NAMES,
        kind=st.sampled_from(KINDS),
        durable=st.booleans(),
        auto_delete=st.booleans(),
        internal=st.booleans(),
        alternate=st.one_of(st.none(), NAMES),
    )
    def declare_exchange(
        self, name: str, kind: str, durable: bool, auto_delete: bool, internal: bool, alternate: str | None
    ) -> None:
        self.both(
            lambda: self.broker.declare_exchange(
                name,
                kind,
                durable=durable,
                auto_delete=auto_delete,
                internal=internal,
                arguments={} if alternate is None else {"alternate-exchange": alternate},
            ),
            lambda: self.model.declare_exchange(
                name, ModelExchange(kind, durable, auto_delete, internal, alternate)
            ),
        )

    @rule(name=NAMES, if_unused=st.booleans())
    def delete_exchange(self, name: str, if_unused: bool) -> None:
        self.both(
            lambda: self.broker.delete_exchange(name, if_unused=if_unused),
            lambda: self.model.delete_exchange(name, if_unused),
        )

    @rule(binding=BINDINGS, peer=PEERS)
    def bind(self, binding: Any, peer: str) -> None:
        source, (kind, name), key, arguments = binding
        self.both(
            lambda: self.broker.bind(source, kind, name, key, arguments, peer=self.peers[peer]),
            lambda: self.model.bind(source, kind, name, key, arguments, peer),
        )

    @rule(data=st.data(), peer=PEERS)
    def unbind_what_is_there(self, data: st.DataObject, peer: str) -> None:
        if self.model.bindings:
            source, kind, name, key, arguments = data.draw(st.sampled_from(self.model.bindings))
            self.unbind((source, (kind, name), key, dict(arguments)), peer)

    @rule(binding=BINDINGS, peer=PEERS)
    def unbind(self, binding: Any, peer: str) -> None:
        source, (kind, name), key, arguments = binding
        self.both(
            lambda: self.broker.unbind(source, kind, name, key, arguments, peer=self.peers[peer]),
            lambda: self.model.unbind(source, kind, name, key, arguments, peer),
        )

    @rule(peer=PEERS)
    def disown(self, peer: str) -> None:
        self.broker.disown(self.peers[peer])
        self.model.disown(peer)

    @rule(
        exchange=st.one_of(st.just(""), NAMES), keys=st.lists(KEYS, min_size=1, max_size=2), headers=HEADERS
    )
    def publish(self, exchange: str, keys: list[str], headers: dict[str, Any]) -> None:
        if exchange and exchange not in self.model.exchanges:
            return
        found = self.broker.route(self.broker.get_exchange(exchange), keys, lambda: headers)
        assert len(found) == len(set(found))
        assert {queue.address for queue in found} == self.model.route(exchange, keys, headers)

    @invariant()
    def has_the_same(self) -> None:
        assert self.broker.queues.keys() == self.model.queues.keys()
        assert self.broker.exchanges.keys() == {"", *self.model.exchanges}
        ours = [(each.source, *each.destination, each.key, each.arguments) for each in self.broker.bindings]
        assert ours == self.model.bindings
        for name in self.model.exchanges:
            assert [each for each in self.model.bindings if each[0] == name] == [
                (each.source, *each.destination, each.key, each.arguments)
                for each in self.broker.bindings.of_source(name)
            ]


TestBrokers = Brokers.TestCase
TestBrokers.settings = settings(max_examples=scaled(100), stateful_step_count=20)
