"""The public calls of each client, so that each of them can meet a loss of its connection.

A script opens a connection that reconnects, makes what the calls need, and has one call for each public method of each public
class that waits for the server. ``PLUMBING`` names the methods that are public for the package's own modules alone.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import acceptor
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from tests.container.served import Redialled
    from trio_amqp10.net.dialect import AcceptedConnection


@dataclass(kw_only=True)
class Stage:
    """What the calls of a script work with.

    Attributes:
        container: the server.
        server: by which it is dialled.
        things: by name, what the script has made on the connection.
    """

    container: Container
    server: Redialled
    things: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.things[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class LossCall:
    """One public call.

    Attributes:
        run: makes the call, and gives back its result.
        expected: what the result may be.
        errors: the named errors that it may raise instead; each is in its docstring.
    """

    run: Callable[[Stage], Awaitable[object]]
    expected: Callable[[Any], bool] = lambda _result: True
    errors: tuple[type[BaseException], ...] = ()


@dataclass(frozen=True, kw_only=True)
class LossScript:
    """The client of one protocol.

    Attributes:
        serve: makes what serves a container.
        stage: opens a connection that reconnects, and makes what the calls need.
        classes: the public classes with calls that wait.
        calls: by class and method.
        plumbing: methods of these classes that programs do not call.
    """

    serve: Callable[[Container], Any]
    stage: Callable[[Stage], Any]
    classes: tuple[type, ...]
    calls: dict[str, LossCall]
    plumbing: frozenset[str]


def waiting_methods(cls: type) -> set[str]:
    """The public methods of a class that wait for the server, or open something that does on entering."""
    return {
        name
        for name, member in inspect.getmembers(cls)
        if (inspect.iscoroutinefunction(member) and (name[0] != "_" or name == "__anext__"))
        or (name[:5] in ("open_", "consu") and callable(member))
    }


async def entered(opening: Any) -> str:
    """Enter and leave what a call has made."""
    async with opening:
        return "entered"


def container_with_queue() -> Container:
    container = Container()
    container.add_queue("q")
    container.add_queue("spare")
    container.add_queue("gone")
    container.add_topic("news")
    container.add_management()
    return container


def is_entered(result: object) -> bool:
    return result == "entered"


# -- 0-9-1 --------------------------------------------------------------------------------------


@asynccontextmanager
async def _stage_091(stage: Stage) -> AsyncGenerator[None]:
    async with (
        amqp091.open_connection("amqp091://guest:guest@server", reconnect=True) as connection,
        connection.open_channel() as channel,
        connection.open_channel() as other,
        connection.open_publisher() as publisher,
        connection.open_requester("spare") as requester,
    ):
        queue = await channel.declare_queue("mine")
        await publisher.publish("", "mine", b"there")
        await publisher.publish("", "mine", b"second")
        exchange = await channel.declare_exchange("x", "fanout")
        await channel.declare_exchange("y", "fanout")
        fed = await channel.declare_queue("fed")
        await publisher.publish("", "fed", b"1")
        await publisher.publish("", "fed", b"2")
        async with fed.consume(prefetch=1) as consumer:
            stage.things.update(locals())
            yield


async def _tx091(stage: Stage, end: str) -> object:
    async with stage.connection.open_transaction() as made:
        await made.publish("", "q", b"in tx")
        await getattr(made, end)()
    return "done"


async def _closed_tx(stage: Stage) -> object:
    opening = stage.connection.open_transaction()
    made = await opening.__aenter__()
    await made.publish("", "q", b"in tx")
    await made.aclose()
    return None


async def _consume_091(stage: Stage) -> object:
    async with stage.other.queue("mine").consume() as consumer:
        delivery = await consumer.receive()
        with suppress(amqp091.DeliveryLostError):
            delivery.ack()
        [node] = [each for address, each in stage.container.nodes.items() if address.endswith("mine")]
        return delivery.body, len(node.outlets) <= 1


async def _exclusive_091(stage: Stage) -> object:
    async with stage.other.queue("mine").consume(exclusive=True) as consumer:
        return (await consumer.receive()).body


async def _ticket_091(stage: Stage) -> object:
    ticket = await stage.publisher.transmit("", "q", b"ticket")
    await ticket.outcome()
    return ticket.state


async def _returned_091(stage: Stage) -> object:
    await stage.other.publish("", "nowhere", b"back", mandatory=True)
    with trio.move_on_after(60):  # a publish without a confirm may be lost, and then nothing comes back
        return (await stage.other.next_returned()).body
    return b"back"


async def _settle_091(stage: Stage) -> object:
    delivery = await stage.consumer.receive()
    with suppress(amqp091.DeliveryLostError):
        delivery.ack()
    return delivery.body


_GONE: Final = (amqp091.ConnectionClosedError,)
_TX: Final = (amqp091.ConnectionClosedError, amqp091.TransactionInDoubtError)


def _get_ok(result: Any) -> bool:
    return result is not None and result.body == b"there"


_QUEUES_091: Final = {
    "Queue.get": LossCall(lambda s: s.other.queue("mine").get(), _get_ok),
    "Queue.bind": LossCall(lambda s: s.queue.bind("x")),
    "Queue.purge": LossCall(lambda s: s.queue.purge(), lambda n: n in (0, 2)),
    "Queue.delete": LossCall(lambda s: s.queue.delete(), lambda n: n in (0, 2)),
    "Consumer.receive": LossCall(_settle_091, lambda body: body in (b"1", b"2")),
    "Consumer.receive_many": LossCall(lambda s: s.consumer.receive_many(), bool),
    "Consumer.__anext__": LossCall(lambda s: anext(s.consumer), lambda got: got.body in (b"1", b"2")),
    "Consumer.aclose": LossCall(lambda s: s.consumer.aclose()),
}
_PLUMBING_091: Final = frozenset(
    {
        *(
            "wait",
            "next_of_handshake",
            "wait_recovered",
            "hang_up",
            "call",
            "attempt",
            "cancel",
            "finish",
            "leave",
        ),
        *("make_exchange", "make_queue", "open", "start_consumer", "consuming"),
    }
)
"""``open_channel`` and its like call ``open``, ``leave`` and ``finish``; ``Queue.consume`` calls ``start_consumer`` and ``cancel``."""


def _channel_calls(kind: str, thing: str, module: Any) -> dict[str, LossCall]:
    """The calls of a channel of 0-9-1 or of 10.3."""

    def of(call: Callable[[Any], Awaitable[object]]) -> Callable[[Stage], Awaitable[object]]:
        return lambda stage: call(getattr(stage, thing))

    return {
        f"{kind}.declare_exchange": LossCall(of(lambda c: c.declare_exchange("new", "topic"))),
        f"{kind}.declare_queue": LossCall(
            of(lambda c: c.declare_queue("new", exclusive=True)), lambda q: q.name == "new"
        ),
        f"{kind}.declare_queue of the server's name": LossCall(
            of(lambda c: c.declare_queue("", exclusive=True)), lambda q: bool(q.name)
        ),
        f"{kind}.declare_queue passive": LossCall(
            of(lambda c: c.declare_queue("q", passive=True)), lambda q: q.name == "q"
        ),
        f"{kind}.delete_exchange": LossCall(of(lambda c: c.delete_exchange("y"))),
        f"{kind}.flow": LossCall(of(lambda c: c.flow(active=True))),
        f"{kind}.publish": LossCall(of(lambda c: c.publish("", "q", b"more"))),
        f"{kind}.wait_unblocked": LossCall(of(lambda c: c.wait_unblocked())),
        f"{kind}.aclose": LossCall(of(lambda c: c.aclose())),
    }


def _calls_091(kind: str, thing: str) -> dict[str, LossCall]:
    def of(call: Callable[[Any], Awaitable[object]]) -> Callable[[Stage], Awaitable[object]]:
        return lambda stage: call(getattr(stage, thing))

    return _channel_calls(kind, thing, amqp091) | {
        f"{kind}.bind_exchange": LossCall(of(lambda c: c.bind_exchange("y", "x"))),
        f"{kind}.unbind_exchange": LossCall(of(lambda c: c.unbind_exchange("y", "x"))),
        f"{kind}.delete_queue": LossCall(of(lambda c: c.delete_queue("spare")), lambda n: n == 0),
        f"{kind}.qos": LossCall(of(lambda c: c.qos(5))),
        f"{kind}.qos of the channel": LossCall(of(lambda c: c.qos(5, global_=True))),
        f"{kind}.recover": LossCall(of(lambda c: c.recover())),
    }


def _in_transaction(calls: dict[str, LossCall], module: Any) -> dict[str, LossCall]:
    """The same calls on a channel with transactions, which does not come back: it was lost with its connection."""

    def inside(call: LossCall) -> Callable[[Stage], Awaitable[object]]:
        async def run(stage: Stage) -> object:
            async with stage.connection.open_transaction() as made:
                stage.things["transaction"] = made
                return await call.run(stage)

        return run

    made = {name: LossCall(inside(call), call.expected, (*call.errors, *_TX)) for name, call in calls.items()}
    return made | {"Transaction.aclose": LossCall(_closed_tx)}


_AMQP091: Final = LossScript(
    serve=Amqp091,
    stage=_stage_091,
    classes=(
        amqp091.Connection,
        amqp091.Channel,
        amqp091.Publisher,
        amqp091.Transaction,
        amqp091.Queue,
        amqp091.Exchange,
        amqp091.Consumer,
        amqp091.Requester,
        amqp091.Ticket,
    ),
    calls={
        "Connection.open_channel": LossCall(lambda s: entered(s.connection.open_channel()), is_entered),
        "Connection.open_publisher": LossCall(lambda s: entered(s.connection.open_publisher()), is_entered),
        "Connection.open_transaction": LossCall(
            lambda s: entered(s.connection.open_transaction()),
            is_entered,
            (amqp091.ConnectionClosedError, amqp091.TransactionInDoubtError),
        ),
        "Connection.open_requester": LossCall(
            lambda s: entered(s.connection.open_requester("q")), is_entered
        ),
        "Connection.update_secret": LossCall(lambda s: s.connection.update_secret(b"new")),
        "Connection.wait_unblocked": LossCall(lambda s: s.connection.wait_unblocked()),
        "Connection.wait_closed": LossCall(lambda s: _closed(s, s.connection)),
        "Connection.aclose": LossCall(lambda s: s.connection.aclose()),
        **_calls_091("Channel", "other"),
        "Channel.next_returned": LossCall(_returned_091, lambda body: body == b"back"),
        **_calls_091("Publisher", "publisher"),
        "Publisher.next_returned": LossCall(_returned_091, lambda body: body == b"back"),
        "Publisher.transmit": LossCall(_ticket_091, lambda state: state == "confirmed"),
        "Publisher.wait_confirmed": LossCall(lambda s: s.publisher.wait_confirmed()),
        **_in_transaction(_calls_091("Transaction", "transaction"), amqp091),
        "Transaction.next_returned": LossCall(_returned_091, lambda body: body == b"back"),
        "Transaction.commit": LossCall(lambda s: _tx091(s, "commit"), errors=_TX),
        "Transaction.rollback": LossCall(lambda s: _tx091(s, "rollback"), errors=_TX),
        **_QUEUES_091,
        "Queue.consume": LossCall(_consume_091, lambda got: got == (b"there", True)),
        "Queue.consume exclusive": LossCall(_exclusive_091, lambda got: got == b"there"),
        "Queue.get without acknowledgement": LossCall(
            lambda s: s.other.queue("mine").get(no_ack=True), lambda got: got is None or got.body != b"1"
        ),
        "Queue.unbind": LossCall(lambda s: s.queue.unbind("x")),
        "Exchange.bind": LossCall(lambda s: s.exchange.bind("y")),
        "Exchange.unbind": LossCall(lambda s: s.exchange.unbind("y")),
        "Exchange.delete": LossCall(lambda s: s.exchange.delete()),
        "Requester.request": LossCall(
            lambda s: _unanswered(s.requester.request(b"?")),
            errors=(amqp091.PublishInDoubtError, amqp091.ReplyLostError),
        ),
        "Ticket.outcome": LossCall(_ticket_091, lambda state: state == "confirmed"),
    },
    plumbing=_PLUMBING_091,
)


async def _closed(stage: Stage, connection: Any) -> object:
    async def close() -> None:
        await trio.sleep(30)
        await connection.aclose()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(close)
        await connection.wait_closed()
    return None


async def _unanswered(call: Awaitable[object]) -> object:
    """A request that nobody serves: what counts is that a loss ends it, or that it waits on."""
    with trio.move_on_after(60):
        await call
    return None


# -- 10.3 ---------------------------------------------------------------------------------------


@asynccontextmanager
async def _stage_103(stage: Stage) -> AsyncGenerator[None]:
    async with (
        amqp_10_3.open_connection("amqp103://guest:guest@server", reconnect=True) as connection,
        connection.open_channel() as channel,
        connection.open_channel() as other,
    ):
        queue = await channel.declare_queue("mine")
        await channel.declare_exchange("x", "fanout")
        await channel.declare_exchange("y", "fanout")
        fed = await channel.declare_queue("fed")
        async with connection.open_transaction() as out:
            for name, body in (("mine", b"there"), ("mine", b"second"), ("fed", b"1"), ("fed", b"2")):
                await out.publish("", name, body)
        async with fed.consume(prefetch=1) as consumer:
            stage.things.update(locals())
            yield


async def _alert_103(stage: Stage) -> object:
    with trio.move_on_after(60):
        await stage.other.next_alert()
    return None


def _calls_103(kind: str, thing: str) -> dict[str, LossCall]:
    return _channel_calls(kind, thing, amqp_10_3) | {
        f"{kind}.request_access": LossCall(lambda s: getattr(s, thing).request_access()),
        f"{kind}.next_alert": LossCall(_alert_103),
        f"{kind}.next_returned": LossCall(_returned_091, lambda body: body == b"back"),
    }


_AMQP103: Final = LossScript(
    serve=Amqp103,
    stage=_stage_103,
    classes=(
        amqp_10_3.Connection,
        amqp_10_3.Channel,
        amqp_10_3.Transaction,
        amqp_10_3.Queue,
        amqp_10_3.Consumer,
    ),
    calls={
        "Connection.open_channel": LossCall(lambda s: entered(s.connection.open_channel()), is_entered),
        "Connection.open_transaction": LossCall(
            lambda s: entered(s.connection.open_transaction()), is_entered, _TX
        ),
        "Connection.wait_closed": LossCall(lambda s: _closed(s, s.connection)),
        "Connection.aclose": LossCall(lambda s: s.connection.aclose()),
        **_calls_103("Channel", "other"),
        **_in_transaction(_calls_103("Transaction", "transaction"), amqp_10_3),
        "Transaction.commit": LossCall(lambda s: _tx091(s, "commit"), errors=_TX),
        "Transaction.rollback": LossCall(lambda s: _tx091(s, "rollback"), errors=_TX),
        **_QUEUES_091,
        "Queue.consume": LossCall(_consume_091, lambda got: got == (b"there", True)),
        "Queue.consume exclusive": LossCall(_exclusive_091, lambda got: got == b"there"),
    },
    plumbing=_PLUMBING_091,
)


# -- AMQP/Fast ----------------------------------------------------------------------------------


@asynccontextmanager
async def _stage_fast(stage: Stage) -> AsyncGenerator[None]:
    async with (
        amqp_fast.open_connection("amqp-fast://server", reconnect=True, client_name="shop") as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
        channel.open_handle("spare") as fed,
        channel.open_handle("news", service="topic", browser=False) as topic,
    ):
        await handle.send(b"there")
        await fed.send(b"1")
        await fed.send(b"2")
        await fed.consume(1)
        stage.things.update(locals())
        yield


async def _tx_fast(stage: Stage, end: str) -> object:
    async with (
        stage.connection.open_channel(transacted=True) as made,
        made.open_handle("q") as handle,
    ):
        await handle.send(b"in tx")
        await getattr(made, end)()
    return "done"


async def _consume_fast(stage: Stage) -> object:
    await stage.handle.consume(5)
    delivery = await stage.handle.receive()
    with suppress(amqp_fast.DeliveryLostError):
        delivery.ack()
    return delivery.body, len(stage.container.nodes["q"].outlets) <= 1


async def _browse_fast(stage: Stage) -> object:
    [numbers, *_] = await stage.handle.query()
    return (await stage.handle.browse(numbers[0])).body


async def _cancel_fast(stage: Stage) -> object:
    await stage.topic.consume(identifier="kept")
    await stage.topic.cancel("kept")
    return None


async def _receive_fast(stage: Stage, call: str) -> object:
    delivery = await getattr(stage.fed, call)()
    return delivery.body


_FAST_GONE: Final = (amqp_fast.ConnectionClosedError, amqp_fast.ChannelClosedError)

_AMQP_FAST: Final = LossScript(
    serve=AmqpFast,
    stage=_stage_fast,
    classes=(amqp_fast.Connection, amqp_fast.Channel, amqp_fast.Handle),
    calls={
        "Connection.open_channel": LossCall(lambda s: entered(s.connection.open_channel()), is_entered),
        "Connection.open_channel transacted": LossCall(
            lambda s: entered(s.connection.open_channel(transacted=True)), is_entered
        ),
        "Connection.wait_closed": LossCall(lambda s: _closed(s, s.connection)),
        "Connection.aclose": LossCall(lambda s: s.connection.aclose()),
        "Channel.open_handle": LossCall(lambda s: entered(s.channel.open_handle("q")), is_entered),
        "Channel.commit": LossCall(lambda s: _tx_fast(s, "commit"), errors=_FAST_GONE),
        "Channel.rollback": LossCall(lambda s: _tx_fast(s, "rollback"), errors=_FAST_GONE),
        "Channel.aclose": LossCall(lambda s: s.channel.aclose()),
        "Handle.send": LossCall(lambda s: s.handle.send(b"more")),
        "Handle.consume": LossCall(_consume_fast, lambda got: got == (b"there", True)),
        "Handle.receive": LossCall(lambda s: _receive_fast(s, "receive"), lambda got: got == b"1"),
        "Handle.__anext__": LossCall(lambda s: _receive_fast(s, "__anext__"), lambda got: got == b"1"),
        "Handle.pause": LossCall(lambda s: s.handle.pause()),
        "Handle.resume": LossCall(lambda s: s.handle.resume()),
        "Handle.cancel": LossCall(_cancel_fast),
        "Handle.query": LossCall(lambda s: s.handle.query(), bool),
        "Handle.browse": LossCall(
            _browse_fast, lambda body: body == b"there", (amqp_fast.NotAvailableError,)
        ),
        "Handle.aclose": LossCall(lambda s: s.handle.aclose()),
    },
    plumbing=frozenset(
        {
            "wait",
            "opened",
            "hang_up",
            "restore",
            "until_restored",
            "wait_for",
            "wait_for_keys",
            "wait_for_room",
        }
    ),
)


# -- 1.0 ----------------------------------------------------------------------------------------


class _Served10:
    """A container that serves AMQP 1.0 in memory."""

    def __init__(self, container: Container) -> None:
        self._container = container

    async def serve(self, accepted: AcceptedConnection) -> None:
        await acceptor().run(accepted.stream, self._container.handle)


@asynccontextmanager
async def _stage_10(stage: Stage) -> AsyncGenerator[None]:
    async with (
        amqp.open_connection("amqp://server", reconnect=True) as connection,
        connection.open_session() as session,
        connection.open_sender("q") as sender,
        connection.open_sender("spare") as feeder,
        connection.open_receiver("spare", credit=1) as receiver,
        connection.open_receiver("gone", credit=0) as still,
        amqp.open_requester(connection, "spare") as requester,
        connection.open_sender("gone") as unused,
    ):
        await sender.send(b"there")
        await feeder.send(b"1")
        await feeder.send(b"2")
        stage.things.update(locals())
        yield


async def _tx_10(stage: Stage, end: str) -> object:
    async with amqp.open_transaction(stage.connection) as made:
        await stage.sender.send(b"in tx", transaction=made)
        await getattr(made, end)()
    return "done"


async def _resumed(link: Any) -> object:
    await link.detach()
    await link.resume()
    return None


async def _wait_settled(stage: Stage) -> object:
    async with stage.connection.open_receiver("q") as receiver:
        delivery = await receiver.receive()
        delivery.accept()
        await delivery.wait_settled()
        return bytes(delivery.message.body)


async def _received_10(stage: Stage) -> object:
    async with stage.connection.open_receiver("q") as receiver:
        delivery = await receiver.receive()
        delivery.accept()
        return bytes(delivery.message.body), len(stage.container.nodes["q"].outlets) <= 1


async def _one_of(call: Awaitable[Any]) -> object:
    delivery = await call
    found = delivery if isinstance(delivery, list) else [delivery]
    return [bytes(each.message.body) for each in found][:1]


async def _transmitted(stage: Stage) -> object:
    delivery = await stage.sender.transmit(b"more")
    return await delivery.outcome()


def _first(result: object) -> bool:
    return result in ([b"1"], [b"2"])


_DOUBT_10: Final = (amqp.TransactionInDoubtError, amqp.TransactionError)

_AMQP10: Final = LossScript(
    serve=_Served10,
    stage=_stage_10,
    classes=(
        amqp.Connection,
        amqp.Session,
        amqp.Sender,
        amqp.Receiver,
        amqp.Delivery,
        amqp.Requester,
        amqp.Transaction,
    ),
    calls={
        "Connection.open_session": LossCall(lambda s: entered(s.connection.open_session()), is_entered),
        "Connection.open_sender": LossCall(lambda s: entered(s.connection.open_sender("q")), is_entered),
        "Connection.open_receiver": LossCall(_received_10, lambda got: got == (b"there", True)),
        "Connection.open_requester": LossCall(
            lambda s: entered(s.connection.open_requester("q")), is_entered
        ),
        "Connection.open_management": LossCall(lambda s: entered(s.connection.open_management()), is_entered),
        "Connection.open_transaction": LossCall(
            lambda s: entered(s.connection.open_transaction()), is_entered, _DOUBT_10
        ),
        "Connection.wait_closed": LossCall(lambda s: _closed(s, s.connection)),
        "Connection.aclose": LossCall(lambda s: s.connection.aclose()),
        "Session.open_sender": LossCall(lambda s: entered(s.session.open_sender("q")), is_entered),
        "Session.open_receiver": LossCall(lambda s: entered(s.session.open_receiver("q")), is_entered),
        "Session.open_transaction": LossCall(
            lambda s: entered(s.session.open_transaction()), is_entered, _DOUBT_10
        ),
        "Session.aclose": LossCall(lambda s: s.session.aclose()),
        "Sender.send": LossCall(lambda s: s.sender.send(b"more")),
        "Sender.transmit": LossCall(_transmitted),
        "Sender.flush": LossCall(lambda s: s.sender.flush()),
        "Sender.wait_sendable": LossCall(lambda s: s.sender.wait_sendable()),
        "Sender.wait_written": LossCall(lambda s: s.sender.wait_written()),
        "Sender.settle_up": LossCall(lambda s: s.sender.settle_up()),
        "Sender.detach": LossCall(lambda s: s.unused.detach()),
        "Sender.resume": LossCall(lambda s: _resumed(s.unused)),
        "Sender.aclose": LossCall(lambda s: s.sender.aclose()),
        "Receiver.receive": LossCall(lambda s: _one_of(s.receiver.receive()), _first),
        "Receiver.receive_many": LossCall(lambda s: _one_of(s.receiver.receive_many(2)), _first),
        "Receiver.__anext__": LossCall(lambda s: _one_of(anext(s.receiver)), _first),
        "Receiver.drain": LossCall(lambda s: s.still.drain()),
        "Receiver.use_up": LossCall(lambda s: s.still.use_up()),
        "Receiver.settle_up": LossCall(lambda s: s.still.settle_up()),
        "Receiver.detach": LossCall(lambda s: s.still.detach()),
        "Receiver.resume": LossCall(lambda s: _resumed(s.still)),
        "Receiver.aclose": LossCall(lambda s: s.receiver.aclose()),
        "Delivery.wait_settled": LossCall(_wait_settled, lambda body: body == b"there"),
        "Requester.request": LossCall(
            lambda s: _unanswered(s.requester.request(b"?")), errors=(amqp.AmqpError,)
        ),
        "Transaction.commit": LossCall(lambda s: _tx_10(s, "commit"), errors=_DOUBT_10),
        "Transaction.rollback": LossCall(lambda s: _tx_10(s, "rollback"), errors=_DOUBT_10),
    },
    plumbing=frozenset(
        {
            *("wait", "opened", "begun", "attached", "wait_recovered", "hang_up", "take_replies", "head"),
            *("next_incoming_link", "open_redirected", "put_token", "session_to_attach"),
        }
    ),
)
"""``head`` reads what came; links of a peer, redirects and tokens are what the server begins or needs first."""

LOSS_SCRIPTS: Final = {"1.0": _AMQP10, "0-9-1": _AMQP091, "10.3": _AMQP103, "amqp-fast": _AMQP_FAST}
"""By the name of the protocol; the draft of 2010 has the client of AMQP 1.0."""
