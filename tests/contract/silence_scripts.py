"""Calls of the client of each protocol that await an answer of the peer, and a server that falls silent before it.

The server is a container at the other end of a stream in memory. Once it is silent the client gets heartbeats, and nothing else
that the server writes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import accepted
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_fast import spec as fast_spec
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.container.dialects import dialects_of
from trio_amqp10.sasl import Server

ANSWER_TIMEOUT: Final = 7.0
_PAUSE: Final = 1.0


class Silent(trio.abc.Stream):
    """A stream whose other end falls silent, but for heartbeats."""

    def __init__(self, stream: trio.abc.Stream, heartbeat: bytes) -> None:
        self._stream = stream
        self._heartbeat = heartbeat
        self.is_silent = False

    def fall_silent(self) -> None:
        """From now on nothing comes through but heartbeats."""
        self.is_silent = True

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self.is_silent:
            data = bytes(await self._stream.receive_some(max_bytes))
            if not self.is_silent:
                return data
        await trio.sleep(_PAUSE)
        return self._heartbeat

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


Call = Callable[[Any, Callable[[], None]], Awaitable[None]]
"""Brings a connection to where the call is possible, lets the peer fall silent, and calls."""


@dataclass(frozen=True, kw_only=True)
class Silence:
    """What the client of a protocol awaits.

    Attributes:
        connected: a connection, and what lets its peer fall silent.
        classes: of the client, whose public calls are all listed here, as ``Class.call``.
        calls: those that end with ``errors``.
        brief: those that end after ``close_timeout`` without an error, because nobody needs the answer.
        unbounded: those that await something that no peer is bound to send, or nothing; and why.
        errors: one of these is raised by a call if the peer does not answer.
    """

    connected: Callable[[], AbstractAsyncContextManager[tuple[Any, Callable[[], None]]]]
    classes: tuple[type, ...]
    calls: dict[str, Call]
    brief: dict[str, Call]
    unbounded: dict[str, str] = field(default_factory=dict)
    errors: tuple[type[Exception], ...]


# -- AMQP 1.0 -----------------------------------------------------------------------------------------


@asynccontextmanager
async def _connected10(dialect: str) -> AsyncGenerator[tuple[Any, Callable[[], None]]]:
    container = amqp.Container("hub")
    container.add_queue("q")
    acceptor = Acceptor(container_id="hub", sasl=Server(), dialect=dialect)
    ours, theirs = memory_stream_pair()
    stream = Silent(ours, b"\0\0\0\x08\x02\0\0\0")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor.run, theirs, container.handle)
        async with amqp.open_connection(
            stream, dialect=dialect, limits=amqp.Limits(answer_timeout=ANSWER_TIMEOUT)
        ) as connection:
            yield connection, stream.fall_silent
        nursery.cancel_scope.cancel()


async def _enter(opening: Any) -> None:
    async with opening:
        raise AssertionError("it was opened")


async def _session(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    async with connection.open_session() as session:
        await session.begun()


async def _link(connection: Any, silence: Callable[[], None], kind: str) -> None:
    silence()
    await _enter(getattr(connection, kind)("q"))


async def _link_of_session(connection: Any, silence: Callable[[], None], kind: str) -> None:
    async with connection.open_session() as session:
        silence()
        await _enter(getattr(session, kind)("q"))


async def _requester(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await _enter(connection.open_requester("q"))


async def _management(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await _enter(connection.open_management())


async def _declare(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await _enter(connection.open_transaction())


async def _declare_in_session(connection: Any, silence: Callable[[], None]) -> None:
    async with connection.open_session() as session:
        silence()
        await _enter(session.open_transaction())


async def _commit(connection: Any, silence: Callable[[], None]) -> None:
    """Whether it was committed is in doubt, because of the error that is named."""
    async with connection.open_transaction() as transaction:
        silence()
        try:
            await transaction.commit()
        except (amqp.TransactionInDoubtError, amqp091.TransactionInDoubtError) as doubt:
            raise doubt.__cause__ or doubt from None


async def _rollback(connection: Any, silence: Callable[[], None]) -> None:
    async with connection.open_transaction() as transaction:
        silence()
        await transaction.rollback()


async def _drain(connection: Any, silence: Callable[[], None], call: str) -> None:
    async with connection.open_receiver("q", credit=5) as receiver:
        silence()
        await getattr(receiver, call)()


async def _end_link(connection: Any, silence: Callable[[], None], kind: str, call: str) -> None:
    async with getattr(connection, kind)("q") as link:
        silence()
        await getattr(link, call)()


async def _end_session(connection: Any, silence: Callable[[], None]) -> None:
    async with connection.open_session() as session:
        silence()
        await session.aclose()


async def _close(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await connection.aclose()


async def _put_token(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await connection.put_token("a", amqp.Token(type="jwt", value="x"))


async def _resume(connection: Any, silence: Callable[[], None], kind: str) -> None:
    async with getattr(connection, kind)("q", expiry_policy="never") as link:
        await link.detach()
        silence()
        await link.resume()


_OWN: Final = "waits for what the object of the client is told next"
_PROGRAM: Final = "what it waits for is for the program at the other end to send, or to permit"


def _amqp10(dialect: str) -> Silence:
    calls: dict[str, Call] = {
        "Connection.open_session": _session,
        "Session.begun": _session,
        "Connection.open_sender": partial(_link, kind="open_sender"),
        "Connection.open_receiver": partial(_link, kind="open_receiver"),
        "Session.open_sender": partial(_link_of_session, kind="open_sender"),
        "Session.open_receiver": partial(_link_of_session, kind="open_receiver"),
        "Connection.open_requester": _requester,
        "Connection.open_management": _management,
        "Connection.put_token": _put_token,
        "Sender.resume": partial(_resume, kind="open_sender"),
        "Receiver.resume": partial(_resume, kind="open_receiver"),
        "Receiver.drain": partial(_drain, call="drain"),
        "Receiver.use_up": partial(_drain, call="use_up"),
    }
    brief: dict[str, Call] = {
        "Connection.aclose": _close,
        "Session.aclose": _end_session,
        "Sender.aclose": partial(_end_link, kind="open_sender", call="aclose"),
        "Sender.detach": partial(_end_link, kind="open_sender", call="detach"),
        "Receiver.aclose": partial(_end_link, kind="open_receiver", call="aclose"),
        "Receiver.detach": partial(_end_link, kind="open_receiver", call="detach"),
    }
    unbounded = {
        "Connection.open_redirected": "dials: see the handshake",
        "Connection.opened": "as the handshake: entering the connection waits for it",
        "Connection.next_incoming_link": _PROGRAM,
        "Connection.wait": _OWN,
        "Connection.wait_closed": _PROGRAM,
        "Connection.wait_recovered": "dials again, as long as ``reconnect`` says",
        "Connection.hang_up": "a second at most; a dial that fails calls it",
        "Connection.session_to_attach": "waits as ``Session.begun``",
        "Session.wait": _OWN,
        "Sender.attached": "entering the link waits for it",
        "Sender.send": _PROGRAM,
        "Sender.transmit": _PROGRAM,
        "Sender.flush": _PROGRAM,
        "Sender.settle_up": "waits for ``close_timeout``",
        "Sender.wait": _OWN,
        "Sender.wait_sendable": _PROGRAM,
        "Sender.wait_written": _PROGRAM,
        "Receiver.attached": "entering the link waits for it",
        "Receiver.receive": _PROGRAM,
        "Receiver.receive_many": _PROGRAM,
        "Receiver.settle_up": "waits for nothing",
        "Receiver.wait": _OWN,
        "Requester.request": "has a time-out of its own, for a reply of a program",
        "Requester.take_replies": _PROGRAM,
    }
    transactions: dict[str, Call] = {
        "Connection.open_transaction": _declare,
        "Session.open_transaction": _declare_in_session,
        "Transaction.commit": _commit,
    }
    if dialect == "1.0":
        calls |= transactions
        brief["Transaction.rollback"] = _rollback
    else:
        unbounded |= dict.fromkeys([*transactions, "Transaction.rollback"], "the draft has them otherwise")
    return Silence(
        connected=partial(_connected10, dialect),
        classes=(amqp.Connection, amqp.Session, amqp.Sender, amqp.Receiver, amqp.Transaction, amqp.Requester),
        calls=calls,
        brief=brief,
        unbounded=unbounded,
        # A link ends alone if its attach is not answered: a program may decide about it, and be slow.
        errors=(amqp.ConnectionClosedError, amqp.LinkRefusedError, amqp.LinkDetachedError),
    )


# -- protocols of methods -----------------------------------------------------------------------------


@asynccontextmanager
async def _connected(
    name: str, module: Any, limits: Any, heartbeat: bytes, **options: Any
) -> AsyncGenerator[tuple[Any, Callable[[], None]]]:
    container = amqp.Container("hub")
    container.add_queue("q")
    container.add_topic("t")
    (dialect,) = dialects_of(container, [name])
    ours, theirs = memory_stream_pair()
    stream = Silent(ours, heartbeat)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialect.serve, accepted(theirs))
        async with module.open_connection(stream, limits=limits, **options) as connection:
            yield connection, stream.fall_silent
        nursery.cancel_scope.cancel()


def _on_channel(call: Callable[[Any], Awaitable[object]], opens: str = "open_channel") -> Call:
    async def run(connection: Any, silence: Callable[[], None]) -> None:
        async with getattr(connection, opens)() as channel:
            silence()
            await call(channel)

    return run


def _opening(opens: str, *arguments: Any) -> Call:
    async def run(connection: Any, silence: Callable[[], None]) -> None:
        silence()
        await _enter(getattr(connection, opens)(*arguments))

    return run


async def _update_secret(connection: Any, silence: Callable[[], None]) -> None:
    silence()
    await connection.update_secret(b"new")


async def _cancel_consumer(connection: Any, silence: Callable[[], None]) -> None:
    async with connection.open_channel() as channel, channel.queue("q").consume() as consumer:
        silence()
        await consumer.aclose()


async def _commit_by(connection: Any, silence: Callable[[], None], call: str) -> None:
    async with connection.open_transaction() as transaction:
        silence()
        await getattr(transaction, call)()


async def _of_exchange(
    connection: Any, silence: Callable[[], None], call: str, arguments: tuple[str, ...] = ()
) -> None:
    async with connection.open_channel() as channel:
        exchange = await channel.declare_exchange("x", "direct")
        silence()
        await getattr(exchange, call)(*arguments)


def _of_queue(call: str, *arguments: Any) -> Call:
    return _on_channel(lambda channel: getattr(channel.queue("q"), call)(*arguments))


_BY_METHODS: Final[dict[str, Call]] = {
    "Connection.open_channel": _opening("open_channel"),
    "Connection.open_transaction": _opening("open_transaction"),
    "Channel.declare_exchange": _on_channel(lambda channel: channel.declare_exchange("x", "direct")),
    "Channel.delete_exchange": _on_channel(lambda channel: channel.delete_exchange("x")),
    "Channel.declare_queue": _on_channel(lambda channel: channel.declare_queue("n")),
    "Channel.flow": _on_channel(lambda channel: channel.flow(True)),
    "Queue.bind": _of_queue("bind", "amq.direct", "k"),
    "Queue.purge": _of_queue("purge"),
    "Queue.delete": _of_queue("delete"),
    "Queue.get": _of_queue("get"),
    "Queue.consume": _on_channel(lambda channel: _enter(channel.queue("q").consume())),
    "Transaction.commit": _commit,
    "Transaction.rollback": partial(_commit_by, call="rollback"),
}
_BRIEF_BY_METHODS: Final[dict[str, Call]] = {
    "Connection.aclose": _close,
    "Channel.aclose": _on_channel(lambda channel: channel.aclose()),
    "Consumer.aclose": _cancel_consumer,
}
_UNBOUNDED_BY_METHODS: Final = {
    "Connection.hang_up": "a second at most; a dial that fails calls it",
    "Connection.next_of_handshake": "as the handshake",
    "Connection.wait": _OWN,
    "Connection.wait_closed": _PROGRAM,
    "Connection.wait_recovered": "dials again, as long as ``reconnect`` says",
    "Channel.call": "the others call it",
    "Channel.attempt": "the others call it",
    "Channel.make_exchange": "the others call it",
    "Channel.make_queue": "the others call it",
    "Channel.start_consumer": "entering the consumer calls it",
    "Channel.open": "entering the channel calls it",
    "Channel.cancel": "the consumer calls it",
    "Channel.finish": "waits for ``close_timeout``, or confirms",
    "Channel.leave": "as ``aclose``",
    "Channel.next_returned": _PROGRAM,
    "Channel.publish": "has no answer",
    "Channel.wait": _OWN,
    "Channel.wait_unblocked": _PROGRAM,
    "Consumer.receive": _PROGRAM,
    "Consumer.receive_many": _PROGRAM,
    "Consumer.wait": _OWN,
}

_AMQP091: Final = Silence(
    connected=partial(
        _connected,
        "0-9-1",
        amqp091,
        amqp091.Limits(answer_timeout=ANSWER_TIMEOUT),
        b"\x08\0\0\0\0\0\0\xce",
    ),
    classes=(
        amqp091.Connection,
        amqp091.Channel,
        amqp091.Queue,
        amqp091.Exchange,
        amqp091.Consumer,
        amqp091.Publisher,
        amqp091.Transaction,
        amqp091.Requester,
    ),
    calls={
        **_BY_METHODS,
        "Connection.open_publisher": _opening("open_publisher"),
        "Connection.open_requester": _opening("open_requester", "q"),
        "Connection.update_secret": _update_secret,
        "Channel.bind_exchange": _on_channel(
            lambda channel: channel.bind_exchange("amq.topic", "amq.fanout")
        ),
        "Channel.unbind_exchange": _on_channel(
            lambda channel: channel.unbind_exchange("amq.topic", "amq.fanout")
        ),
        "Channel.delete_queue": _on_channel(lambda channel: channel.delete_queue("q")),
        "Channel.qos": _on_channel(lambda channel: channel.qos(3)),
        "Channel.recover": _on_channel(lambda channel: channel.recover()),
        "Queue.unbind": _of_queue("unbind", "amq.direct", "k"),
        "Exchange.bind": partial(_of_exchange, call="bind", arguments=("amq.fanout",)),
        "Exchange.unbind": partial(_of_exchange, call="unbind", arguments=("amq.fanout",)),
        "Exchange.delete": partial(_of_exchange, call="delete"),
    },
    brief=_BRIEF_BY_METHODS,
    unbounded={
        **_UNBOUNDED_BY_METHODS,
        "Connection.wait_unblocked": _PROGRAM,
        "Channel.consuming": "entering the consumer of the queue calls it",
        "Publisher.publish": "the confirm is an outcome: the broker may take its time",
        "Publisher.transmit": "writes alone",
        "Publisher.wait_confirmed": "the confirm is an outcome: the broker may take its time",
        "Requester.request": "a reply of a program",
    },
    errors=(amqp091.ConnectionClosedError,),
)

_AMQP103: Final = Silence(
    connected=partial(
        _connected,
        "10.3",
        amqp_10_3,
        amqp_10_3.Limits(answer_timeout=ANSWER_TIMEOUT),
        V10_3.frames.heartbeat,
    ),
    classes=(
        amqp_10_3.Connection,
        amqp_10_3.Channel,
        amqp_10_3.Queue,
        amqp_10_3.Consumer,
        amqp_10_3.Transaction,
    ),
    calls={**_BY_METHODS, "Channel.request_access": _on_channel(lambda channel: channel.request_access())},
    brief=_BRIEF_BY_METHODS,
    unbounded={**_UNBOUNDED_BY_METHODS, "Channel.next_alert": _PROGRAM},
    errors=(amqp_10_3.ConnectionClosedError,),
)


# -- AMQP/Fast ----------------------------------------------------------------------------------------


def _on_handle(call: Callable[[Any], Awaitable[object]]) -> Call:
    async def run(connection: Any, silence: Callable[[], None]) -> None:
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            silence()
            await call(handle)

    return run


async def _cancel_subscription(connection: Any, silence: Callable[[], None]) -> None:
    async with connection.open_channel() as channel, channel.open_handle("t", service="topic") as handle:
        silence()
        await handle.cancel("x")


async def _fast_transaction(connection: Any, silence: Callable[[], None], call: str) -> None:
    async with connection.open_channel(transacted=True) as channel:
        silence()
        await getattr(channel, call)()


_AMQP_FAST: Final = Silence(
    connected=partial(
        _connected,
        "amqp-fast",
        amqp_fast,
        amqp_fast.Limits(answer_timeout=ANSWER_TIMEOUT),
        frame_of(fast_spec.ConnectionPing()),
    ),
    classes=(amqp_fast.Connection, amqp_fast.Channel, amqp_fast.Handle),
    calls={
        "Connection.open_channel": _opening("open_channel"),
        "Channel.open_handle": _on_channel(lambda channel: _enter(channel.open_handle("q"))),
        "Channel.commit": partial(_fast_transaction, call="commit"),
        "Channel.rollback": partial(_fast_transaction, call="rollback"),
        "Handle.consume": _on_handle(lambda handle: handle.consume()),
        "Handle.pause": _on_handle(lambda handle: handle.pause()),
        "Handle.resume": _on_handle(lambda handle: handle.resume()),
        "Handle.query": _on_handle(lambda handle: handle.query()),
        "Handle.browse": _on_handle(lambda handle: handle.browse(1)),
        "Handle.cancel": _cancel_subscription,
    },
    brief={
        "Connection.aclose": _close,
        "Channel.aclose": _on_channel(lambda channel: channel.aclose()),
        "Handle.aclose": _on_handle(lambda handle: handle.aclose()),
    },
    unbounded={
        "Connection.hang_up": "a second at most; a dial that fails calls it",
        "Connection.opened": "as the handshake",
        "Connection.wait": _OWN,
        "Connection.wait_closed": _PROGRAM,
        **dict.fromkeys(
            [
                f"{each}.{call}"
                for each in ("Channel", "Handle")
                for call in ("opened", "restore", "until_restored", "wait_for", "wait_for_keys")
            ],
            "the others call it",
        ),
        "Channel.wait": _OWN,
        "Channel.wait_for_room": _PROGRAM,
        "Handle.wait": _OWN,
        "Handle.wait_for_room": _PROGRAM,
        "Handle.receive": _PROGRAM,
        "Handle.send": "where a message is placed takes as long as it must",
    },
    errors=(amqp_fast.ConnectionClosedError, amqp_fast.TransactionInDoubtError),
)

SILENCE: Final[dict[str, Silence]] = {
    "1.0": _amqp10("1.0"),
    "0-9-1": _AMQP091,
    "10.3": _AMQP103,
    "amqp-fast": _AMQP_FAST,
    "1.0-draft-2010": _amqp10("1.0-draft-2010"),
}
"""By the names of ``PROTOCOLS``."""
