"""Requests whose answers come later, as octets, in each protocol: for the property of ``test_late_answers``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.amqp091.pairs import written as written_091
from tests.amqp091.server.script import Client as Client091
from tests.amqp_10_3.pairs import written as written_103
from tests.amqp_10_3.server.script import Client as Client103
from tests.amqp_fast.pairs import block_of
from tests.amqp_fast.pairs import written as written_fast
from tests.amqp_fast.server.script import Client as ClientFast
from trio_amqp10.amqp091 import spec as spec_091
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp_10_3 import spec as spec_103
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_fast import spec as spec_fast
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.core.reply_codes import ReplyCodeRfc011, reply_text

from .memory_091 import content as content_091
from .memory_10 import MEMORY_10, MEMORY_DRAFT, attach, draft_attach
from .memory_103 import content as content_103

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    import trio

    from trio_amqp10.container import Container
    from trio_amqp10.net.dialect import Dialect

SLOW: Final = "slow"
"""A function that answers later."""


class Request(NamedTuple):
    """What a client asks for.

    Attributes:
        octets: that it sends.
        granted: octets that are in the answer if it may.
        before: what it sends before that, and need not wait for.
    """

    octets: bytes
    granted: bytes
    before: bytes = b""


@dataclass(frozen=True, kw_only=True)
class LateScript:
    """Requests of one protocol.

    Attributes:
        dialect: makes the dialect.
        open: the handshake, and a channel.
        asks: requests that need permission, by name.
        refused: octets that are in the answer to each if the client may not.
        function: a request to the function ``SLOW``, answered when that has returned; None: the protocol confirms no message.
    """

    dialect: Callable[[Container], Dialect]
    open: Callable[[trio.abc.Stream], Awaitable[None]]
    asks: Mapping[str, Request]
    refused: bytes
    function: Request | None


def _request(module: Any, written: Any, method: Any, answer: str, before: bytes = b"") -> Request:
    """A method on channel 1, and how the answer of this name begins."""
    return Request(written(method, 1), module.METHODS.by_name[answer].prefix, before)


def _asks_091() -> dict[str, Request]:
    s = spec_091
    methods = {
        "exchange.declare-ok": s.ExchangeDeclare(exchange="e"),
        "exchange.delete-ok": s.ExchangeDelete(exchange="old"),
        "exchange.bind-ok": s.ExchangeBind(destination="amq.topic", source="amq.fanout"),
        "exchange.unbind-ok": s.ExchangeUnbind(destination="amq.topic", source="amq.fanout"),
        "queue.declare-ok": s.QueueDeclare(queue="new"),
        "queue.bind-ok": s.QueueBind(queue="q", exchange="amq.fanout"),
        "queue.unbind-ok": s.QueueUnbind(queue="q", exchange="amq.fanout"),
        "queue.purge-ok": s.QueuePurge(queue="q"),
        "queue.delete-ok": s.QueueDelete(queue="q"),
        "basic.consume-ok": s.BasicConsume(queue="q"),
        "basic.get-empty": s.BasicGet(queue="q"),
        "tx.select-ok": s.TxSelect(),
    }
    asks = {name: _request(s, written_091, method, name) for name, method in methods.items()}
    publish = content_091(s.BasicPublish(routing_key="q"), b"x")
    confirms = written_091(s.ConfirmSelect(no_wait=True), 1)
    asks["basic.publish"] = Request(publish, s.BasicAck.plan.prefix, confirms)
    asks["basic.publish, returned"] = Request(
        content_091(s.BasicPublish(exchange="amq.direct", routing_key="none", mandatory=True), b"x"),
        s.BasicReturn.plan.prefix,
    )
    return asks


def _asks_103() -> dict[str, Request]:
    s = spec_103
    methods = {
        "exchange.declare-ok": s.ExchangeDeclare(exchange="e", type="direct"),
        "exchange.delete-ok": s.ExchangeDelete(exchange="old"),
        "queue.declare-ok": s.QueueDeclare(queue="new"),
        "queue.bind-ok": s.QueueBind(queue="q", exchange="amq.fanout"),
        "queue.purge-ok": s.QueuePurge(queue="q"),
        "queue.delete-ok": s.QueueDelete(queue="q"),
        "basic.consume-ok": s.BasicConsume(queue="q"),
        "file.consume-ok": s.FileConsume(queue="q"),
        "stream.consume-ok": s.StreamConsume(queue="q"),
        "basic.get-empty": s.BasicGet(queue="q"),
        "tx.select-ok": s.TxSelect(),
    }
    asks = {name: _request(s, written_103, method, name) for name, method in methods.items()}
    asks["basic.publish, returned"] = Request(
        content_103(s.BasicPublish(exchange="amq.direct", routing_key="none", mandatory=True), b"x"),
        s.BasicReturn.plan.prefix,
    )
    return asks


_TAG: Final = 77
_REPLY: Final = written_fast(
    spec_fast.HandleReply(handle_id=1, confirm_tag=_TAG, reply_text=reply_text(ReplyCodeRfc011.SUCCESS))
)


def _asks_fast() -> dict[str, Request]:
    s = spec_fast
    everything: dict[str, Any] = {"producer": True, "consumer": True, "browser": True}
    opened = written_fast(s.HandleOpen(channel_id=1, handle_id=1, dest_name="q", **everything))
    block = block_of(Message(s.MessageHead(), b"x"))
    sent = s.HandleSend(handle_id=1, fragment_size=len(block), confirm_tag=_TAG)
    return {
        "handle open": Request(
            written_fast(
                s.HandleOpen(channel_id=1, handle_id=1, temporary=True, confirm_tag=_TAG, **everything)
            ),
            _REPLY,
        ),
        "handle send": Request(written_fast(sent, fragment=block), _REPLY, opened),
        "handle consume": Request(
            written_fast(s.HandleConsume(handle_id=1, prefetch=1, confirm_tag=_TAG)), _REPLY, opened
        ),
        "handle query": Request(
            written_fast(s.HandleQuery(handle_id=1)),
            written_fast(s.HandleIndex(handle_id=1)),
            opened,
        ),
    }


def _opened(client: Any) -> Callable[[trio.abc.Stream], Awaitable[None]]:
    async def begin(stream: trio.abc.Stream) -> None:
        await client(stream).open()

    return begin


_FUNCTION_FAST: Final = written_fast(
    spec_fast.HandleOpen(channel_id=1, handle_id=1, service_type=3, dest_name=SLOW)
)


def _asks_10(attached: Callable[[str, int, bool], bytes]) -> dict[str, Request]:
    return {
        "attach of a receiver": Request(attached("late-in", 5, True), b"late-in"),
        "attach of a sender": Request(attached("late-out", 6, False), b"late-out"),
    }


LATE: Final = {
    "1.0": LateScript(
        dialect=MEMORY_10.dialect,
        open=MEMORY_10.open,
        asks=_asks_10(attach),
        refused=b"amqp:unauthorized-access",
        function=None,
    ),
    "0-9-1": LateScript(
        dialect=Amqp091,
        open=_opened(Client091),
        asks=_asks_091(),
        refused=b"ACCESS_REFUSED",
        function=Request(
            content_091(spec_091.BasicPublish(routing_key=SLOW), b"x"),
            spec_091.BasicAck.plan.prefix,
            written_091(spec_091.ConfirmSelect(no_wait=True), 1),
        ),
    ),
    "10.3": LateScript(
        dialect=lambda container: Amqp103(container, tickets=False),
        open=_opened(Client103),
        asks=_asks_103(),
        refused=b"ACCESS_REFUSED",
        function=None,
    ),
    "amqp-fast": LateScript(
        dialect=AmqpFast,
        open=_opened(ClientFast),
        asks=_asks_fast(),
        refused=reply_text(ReplyCodeRfc011(403)).encode(),
        function=Request(
            written_fast(
                spec_fast.HandleSend(
                    handle_id=1,
                    fragment_size=len(block_of(Message(spec_fast.MessageHead(), b"x"))),
                    confirm_tag=_TAG,
                ),
                fragment=block_of(Message(spec_fast.MessageHead(), b"x")),
            ),
            _REPLY,
            _FUNCTION_FAST,
        ),
    ),
    "1.0-draft-2010": LateScript(
        dialect=MEMORY_DRAFT.dialect,
        open=MEMORY_DRAFT.open,
        asks=_asks_10(draft_attach),
        refused=b"amqp:unauthorized-access",
        function=None,
    ),
}
"""By the names of the protocols."""
