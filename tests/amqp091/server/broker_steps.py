"""Steps that a broker of 0-9-1 and its naive model both take, and what each channel hears of them.

Each channel has a connection of its own. Behind each step all channels ask for all queues (a passive declare), so that
whatever the step made a queue send has come before the answers. Anything may be the broker: the scripts speak octets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import trio
from hypothesis import strategies as st

from trio_amqp10.amqp091 import spec

from .broker_model import Model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .script import Client, Heard

MODES: Final = ["confirm", "", "tx"]
"""Of the three channels."""

_QUEUES: Final = ("q1", "q2")
_EXCHANGES: Final = {"e1": "direct", "e2": "fanout"}
_PATIENCE: Final = 5.0
"""Seconds for what a broker sends of its own accord, behind its answers."""

queues = st.sampled_from(_QUEUES)
exchanges = st.sampled_from([*_EXCHANGES, "e3"])
often = st.sampled_from([True, True, True, False])
rarely = st.sampled_from([False, False, False, True])


def _step(name: str, *args: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.integers(0, len(MODES) - 1), st.just(name), *args)


STEPS: Final = st.one_of(
    _step("declare", queues, rarely),
    _step("delete", queues, st.booleans()),
    _step("purge", queues),
    _step("declare_exchange", st.sampled_from(["e1", "e2"]), st.sampled_from(["direct", "fanout"])),
    _step("bind", queues, exchanges, st.sampled_from(["a", "b"]), often),
    *[_step("publish", st.just(""), queues, st.booleans())] * 4,
    *[_step("publish", exchanges, st.sampled_from(["a", "b"]), st.booleans())] * 2,
    *[_step("get", queues, rarely)] * 3,
    *[
        _step(
            "settle",
            st.sampled_from(["ack", "requeue", "reject"]),
            st.sampled_from([0, 0, 0, 1, 2]),
            st.booleans(),
        )
    ]
    * 4,
    _step("recover"),
    *[_step("consume", queues, rarely)] * 2,
    _step("cancel"),
    _step("qos", st.integers(0, 2)),
    *[_step("commit"), _step("rollback")] * 2,
    _step("close"),
)
"""One step: the channel, what it does, and with what."""


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "declare": lambda name, durable: spec.QueueDeclare(queue=name, durable=durable),
    "delete": lambda name, if_empty: spec.QueueDelete(queue=name, if_empty=if_empty),
    "purge": lambda name: spec.QueuePurge(queue=name),
    "declare_exchange": lambda name, kind: spec.ExchangeDeclare(exchange=name, type=kind),
    "get": lambda name, no_ack: spec.BasicGet(queue=name, no_ack=no_ack),
    "recover": lambda: spec.BasicRecover(requeue=True),
    "consume": lambda name, no_ack: spec.BasicConsume(queue=name, consumer_tag="tag", no_ack=no_ack),
    "cancel": lambda: spec.BasicCancel(consumer_tag="tag"),
    "qos": lambda count: spec.BasicQos(prefetch_count=count),
    "commit": spec.TxCommit,
    "rollback": spec.TxRollback,
    "close": lambda: spec.ChannelClose(reply_code=200),
}


class Player:
    """One channel of a broker.

    Args:
        client: with an open channel 1.
        mode: ``"confirm"``, ``"tx"`` or neither.
        prefix: of all names, so that several may use one broker.
    """

    def __init__(self, client: Client, mode: str, prefix: str) -> None:
        self._client = client
        self._mode = mode
        self._prefix = prefix
        self._own = False  # whether the next declare-ok is the step's
        self._due = 0  # declare-oks that are asked for behind the step

    async def select(self) -> None:
        """Make the channel what it is to be."""
        made = {"confirm": spec.ConfirmSelect, "tx": spec.TxSelect}.get(self._mode)
        if made is not None:
            assert (await self._client.ask(made())).name.endswith("select-ok")

    async def do(self, name: str, args: Sequence[Any], body: int) -> None:
        """Say the method of a step."""
        client = self._client
        args = [
            self._prefix + each if isinstance(each, str) and each[:1] in ("q", "e") else each for each in args
        ]
        self._own = name in ("declare", "declare_exchange")
        match name, args:
            case "publish", (exchange, key, mandatory):
                await client.publish(exchange, key, b"%d" % body, mandatory=mandatory)
            case "settle", ("ack", tag, multiple):
                await client.say(spec.BasicAck(delivery_tag=tag, multiple=multiple))
            case "settle", (how, tag, multiple):
                await client.say(spec.BasicNack(delivery_tag=tag, multiple=multiple, requeue=how == "+"))
            case "bind", (queue, exchange, key, True):
                await client.say(spec.QueueBind(queue=queue, exchange=exchange, routing_key=key))
            case "bind", (queue, exchange, key, _):
                await client.say(spec.QueueUnbind(queue=queue, exchange=exchange, routing_key=key))
            case _:
                await client.say(_METHODS[name](*args))

    async def hear(self, there: Sequence[str], expected: int, *, waits: bool = False) -> list[Any]:
        """All that comes until every queue has answered, and as many things as are expected.

        Args:
            there: the queues.
            expected: things.
            waits: whether nothing may be asked before the answer: a channel that closes takes nothing, and RabbitMQ ends a
                connection that says something behind a tx.commit.
        """
        heard: list[Any] = []
        if not waits:
            await self._ask(there)
        with trio.move_on_after(math.inf) as scope:
            while waits or self._due or len(heard) < expected:
                if not self._due and not waits:
                    scope.deadline = min(scope.deadline, trio.current_time() + _PATIENCE)
                what = await self._next()
                if what is None:
                    self._due -= 1
                    continue
                heard.append(what)
                if what[0] in ("close", "close-ok"):
                    await self._reopen()
                if what[0] in ("close", "close-ok") or (waits and what[0] == "commit-ok"):
                    waits = False
                    await self._ask(there)
        return heard

    async def _reopen(self) -> None:
        assert (await self._client.ask(spec.ChannelOpen())).name == "channel.open-ok"
        await self.select()

    async def _ask(self, there: Sequence[str]) -> None:
        methods = [spec.QueueDeclare(queue=self._prefix + name, passive=True) for name in there]
        self._due = len(methods)
        await self._client.say(*methods)

    async def _next(self) -> tuple[Any, ...] | None:
        """What came, as the model says it; None for an answer that was asked for behind the step."""
        heard = await self._client.hear()
        assert heard is not None, "the connection ended"
        name = heard.name.rpartition(".")[2]
        if name == "close":
            assert heard.name == "channel.close", heard
            await self._client.say(spec.ChannelCloseOk())
            self._own = False
            return "close", heard["reply_code"]
        if heard.name == "queue.declare-ok" and not self._own:
            return None
        if name == "declare-ok":
            self._own = False
        return self._told(name, heard)

    def _told(self, name: str, heard: Heard) -> tuple[Any, ...]:
        body = heard.body.decode()
        match heard.name:
            case "queue.declare-ok":
                return name, heard["message_count"], heard["consumer_count"]
            case "queue.delete-ok" | "queue.purge-ok":
                return name, heard["message_count"]
            case "basic.deliver":
                return name, heard["delivery_tag"], body, heard["redelivered"]
            case "basic.get-ok":
                exchange, key = (heard[each].decode() for each in ("exchange", "routing_key"))
                places = [each.removeprefix(self._prefix) for each in (exchange, key)]
                return (
                    name,
                    heard["delivery_tag"],
                    body,
                    heard["redelivered"],
                    *places,
                    heard["message_count"],
                )
            case "basic.return":
                return name, body
            case _:
                return (name,)


async def play(clients: Sequence[Client], steps: Sequence[tuple[Any, ...]], prefix: str = "") -> None:
    """Play the steps on a broker and in the model, and compare what each channel hears of each.

    Args:
        clients: one for each of ``MODES``, each with channel 1.
        steps: as of ``STEPS``; those that make it uncertain who gets what are left out.
        prefix: of all names.

    Raises:
        AssertionError: they differ; the message has the steps up to there.
    """
    players = [Player(client, mode, prefix) for client, mode in zip(clients, MODES, strict=True)]
    for player in players:
        await player.select()
    model = Model(MODES)
    taken: list[tuple[Any, ...]] = []
    await _declare_all(players[0], model)
    for number, name, *args in steps:
        if not _certain(model, number, name, args):
            continue
        taken.append((number, name, *args))
        said = args
        if name == "settle":
            how, place, multiple = args
            unacked = model.channels[number].unacked
            said = [
                "+" if how == "requeue" else how,
                unacked[place].tag if place < len(unacked) else 1000,
                multiple,
            ]
        expected = model.step(number, name, *args)
        await players[number].do(name, said, model.bodies)
        order = [number, *(each for each in range(len(players)) if each != number)]
        for each in order:
            waits = each == number and name in ("close", "commit")
            heard = await players[each].hear(list(model.queues), len(expected[each]), waits=waits)
            assert sorted(heard, key=repr) == sorted(expected[each], key=repr), (each, taken)


async def _declare_all(player: Player, model: Model) -> None:
    """Begin with both queues, so that few steps are lost on what is not there."""
    for name in _QUEUES:
        model.step(0, "declare", name, False)
        await player.do("declare", (name, False), 0)
        await player.hear([], 1)


def _certain(model: Model, number: int, name: str, args: Sequence[Any]) -> bool:
    """Whether there is one answer: one consumer each, and a window that does not change under it."""
    channel = model.channels[number]
    if name == "consume":
        queue = model.queues.get(args[0])
        return channel.consuming is None and (queue is None or queue.consumer is None)
    if name == "qos":
        return channel.consuming is None
    if name == "recover":
        return channel.mode != "tx"
    return True
