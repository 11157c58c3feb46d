"""What each method of each protocol needs permission for, with a script that does it.

A ``Row`` is one method in one case. ``NAME`` in its permissions and in its script is the thing that the method is about: it works with
``HERE``, which exists, and a client without the permissions must not be able to tell that from ``GONE``, which does not exist.
Beside it there are the queues ``other`` and ``copy``, the topic exchange ``events`` and the fanout exchange ``all``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from tests.amqp091.server import script as script091
from tests.amqp_10_3.server import script as script103
from tests.amqp_fast.server import script as script_fast
from trio_amqp10.amqp091 import spec as spec091
from trio_amqp10.amqp10.draft_2010.spec import transport as draft_transport
from trio_amqp10.amqp10.peer.errors import DeliveryError, LinkDetachedError
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp_10_3 import spec as spec103
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.wire.properties import FileProperties, StreamProperties
from trio_amqp10.amqp_fast import spec as spec_fast
from trio_amqp10.core.endpoint_role import EndpointRole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

HERE, GONE = "here", "gone"
"""Two names of one length: a thing that exists, and one that does not."""

Right = tuple[str, "str | None"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one method needs.

    Attributes:
        method: as the table of the protocol has it.
        case: which of its cases; empty if there is one.
        rights: the permissions, each an action and an address, or an action alone.
        one: whether one of them suffices; otherwise all are needed.
        run: does it with a client, to the thing of a name; returns the answer of the server.
        works_with: the name with which it works.
        hides: whether the name is that of a thing that may exist or not.
        below: whether the server also asks for what exists below the name, at the same time; the client does not see how often.
    """

    method: str
    case: str = ""
    rights: tuple[str, ...]
    one: bool = False
    run: Callable[[Any, str], Awaitable[Any]]
    works_with: str = HERE
    hides: bool = True
    below: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.case}".strip()

    def needs(self, name: str) -> list[Right]:
        """The permissions for the thing of this name."""
        return rights_of(each.replace("NAME", name) for each in self.rights)


def rights_of(texts: Iterable[str]) -> list[Right]:
    """``"send q"`` as ``("send", "q")``, ``"transact"`` as ``("transact", None)``."""
    return [(action, address or None) for action, _, address in (text.partition(" ") for text in texts)]


@dataclass(frozen=True, kw_only=True)
class Scripts:
    """The rows of one protocol.

    Attributes:
        dial: a client of a container.
        methods: all that a client may send.
        rows: those that need a permission.
        free: those that need none, and why.
        refused: whether an answer is the refusal for want of a permission.
        done: whether an answer is that of a method that did what it says.
    """

    dial: Callable[[amqp.Container], AbstractAsyncContextManager[Any]]
    methods: frozenset[str]
    rows: tuple[Row, ...]
    free: Mapping[str, str]
    refused: Callable[[Any], bool]
    done: Callable[[Any], bool]


# -- 0-9-1 and 10.3 -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Methods:
    """What the rows of 0-9-1 and 10.3 share: each says a method of its own spec."""

    spec: Any
    fence: Any = None
    """A method that is answered behind a publish, which has no answer; None to confirm publishes."""

    def say(
        self, name: str, *, about: str = "queue", **arguments: Any
    ) -> Callable[[Any, str], Awaitable[Any]]:
        """A method whose argument ``about`` is the name."""

        async def run(client: Any, name_: str) -> Any:
            filled = {
                each: value.replace("NAME", name_) if isinstance(value, str) else value
                for each, value in arguments.items()
            }
            return _plain(await client.ask(getattr(self.spec, name)(**{about: name_, **filled})))

        return run

    def publish(
        self,
        exchange: str = "",
        key: str = "NAME",
        *,
        before: str | None = None,
        headers: Mapping[str, list[str]] | None = None,
    ) -> Callable[[Any, str], Awaitable[Any]]:
        """A publish, which is confirmed, or committed after ``before``."""

        async def run(client: Any, name: str) -> Any:
            if self.fence is None and before is None:
                await client.ask(self.spec.ConfirmSelect())
            if before is not None:
                answer = _plain(await client.ask(getattr(self.spec, before)()))
                if answer[0].endswith("close"):
                    return answer
            copies = {
                each: [key.replace("NAME", name) for key in keys] for each, keys in (headers or {}).items()
            }
            where = exchange.replace("NAME", name), key.replace("NAME", name)
            await client.publish(*where, b"x", **({"headers": copies} if copies else {}))
            if before is not None:
                return _plain(await client.ask(self.spec.TxCommit()))
            return _plain(await (client.hear() if self.fence is None else client.ask(self.fence)))

        return run


def _plain(heard: Any) -> tuple[str, dict[str, Any]]:
    """A method that was heard, as values that can be compared."""
    return (heard.name, {key: value for key, value in heard.items() if key != "delivery_tag"})


def _closes(answer: Any) -> bool:
    return bool(answer[0] in ("channel.close", "connection.close") and answer[1]["reply_code"] == 403)


def _common(methods: _Methods) -> tuple[Row, ...]:
    """The rows of the methods that 0-9-1 and 10.3 both have."""
    say, publish = methods.say, methods.publish
    names = "receive NAME", "send NAME", "create NAME", "delete NAME"
    exchanges = (
        *(
            "receive /exchanges/NAME",
            "receive /exchanges/NAME/#",
            "send /exchanges/NAME",
            "send /exchanges/NAME/#",
        ),
        *("create /exchanges/NAME", "delete /exchanges/NAME"),
    )
    return (
        Row(method="exchange.declare", rights=("create /exchanges/NAME",), run=say("ExchangeDeclare", about="exchange", type="topic", durable=True)),
        Row(method="exchange.declare", case="passive", rights=exchanges, one=True, run=say("ExchangeDeclare", about="exchange", passive=True)),
        Row(method="exchange.delete", rights=("delete /exchanges/NAME",), run=say("ExchangeDelete", about="exchange")),
        Row(method="queue.declare", rights=("create NAME",), run=say("QueueDeclare", durable=True)),
        Row(method="queue.declare", case="passive", rights=names, one=True, run=say("QueueDeclare", passive=True)),
        Row(method="queue.declare", case="named by the server", rights=("create",), hides=False, run=say("QueueDeclare", queue="")),
        Row(method="queue.bind", rights=("send NAME", "receive /exchanges/events/a.*"), run=say("QueueBind", exchange="events", routing_key="a.*")),
        Row(method="queue.bind", case="to any exchange", rights=("send other", "receive /exchanges/NAME/a.*"), run=say("QueueBind", about="exchange", queue="other", routing_key="a.*")),
        Row(method="queue.bind", case="whose exchange ignores the key", rights=("send NAME", "receive /exchanges/all/#"), run=say("QueueBind", exchange="all", routing_key="a")),
        Row(method="queue.purge", rights=("receive NAME",), run=say("QueuePurge")),
        Row(method="queue.delete", rights=("delete NAME",), run=say("QueueDelete")),
        Row(method="queue.delete", case="if unused", rights=("delete NAME",), run=say("QueueDelete", if_unused=True)),
        Row(method="basic.publish", rights=("send NAME",), run=publish()),
        Row(method="basic.publish", case="to an exchange", rights=("send /exchanges/NAME/a.b",), run=publish("NAME", "a.b")),
        Row(method="basic.publish", case="in a transaction", rights=("transact", "send NAME"), run=publish(before="TxSelect"), hides=False),
        Row(method="basic.consume", rights=("receive NAME",), run=say("BasicConsume", consumer_tag="c")),
        Row(method="basic.get", rights=("receive NAME",), run=say("BasicGet")),
        Row(method="tx.select", rights=("transact",), hides=False, run=_bare(methods, "TxSelect")),
    )  # fmt: skip


def _bare(methods: _Methods, name: str) -> Callable[[Any, str], Awaitable[Any]]:
    async def run(client: Any, _: str) -> Any:
        return _plain(await client.ask(getattr(methods.spec, name)()))

    return run


def _sent_by_clients(plans: Iterable[Any]) -> frozenset[str]:
    return frozenset(plan.name for plan in plans if plan.sender.permits(EndpointRole.CLIENT))


_CONNECTION: Final = "of the connection itself"
_OWN: Final = "about deliveries, consumers or a transaction of the channel's own"

_091: Final = _Methods(spec091)
_LETTERS: Final = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"}

_ROWS_091: Final = (
    *_common(_091),
    Row(method="exchange.declare", case="with an alternate", works_with=GONE, rights=("create /exchanges/NAME", "receive /exchanges/NAME/#", "send /exchanges/all/#"), run=_091.say("ExchangeDeclare", about="exchange", type="topic", arguments={"alternate-exchange": "all"})),
    Row(method="exchange.bind", rights=("send /exchanges/all/#", "receive /exchanges/NAME/a.*"), run=_091.say("ExchangeBind", about="source", destination="all", routing_key="a.*")),
    Row(method="exchange.bind", case="to any destination", rights=("send /exchanges/NAME/#", "receive /exchanges/events/a.*"), run=_091.say("ExchangeBind", about="destination", source="events", routing_key="a.*")),
    Row(method="exchange.unbind", rights=("send /exchanges/all/#", "receive /exchanges/NAME/a.*"), run=_091.say("ExchangeUnbind", about="source", destination="all", routing_key="a.*")),
    Row(method="queue.declare", case="with dead letters", works_with=GONE, rights=("create NAME", "receive NAME", "send other"), run=_091.say("QueueDeclare", arguments=_LETTERS)),
    Row(method="queue.declare", case="with dead letters by an exchange", works_with=GONE, rights=("create NAME", "receive NAME", "send /exchanges/events/#"), run=_091.say("QueueDeclare", arguments={"x-dead-letter-exchange": "events"})),
    Row(method="queue.declare", case="with dead letters by their keys", works_with=GONE, rights=("create NAME", "receive NAME", "send /exchanges//#"), run=_091.say("QueueDeclare", arguments={"x-dead-letter-exchange": ""})),
    Row(method="queue.declare", case="exclusive", works_with=GONE, rights=("create NAME",), run=_091.say("QueueDeclare", exclusive=True)),
    Row(method="queue.unbind", rights=("send NAME", "receive /exchanges/events/a.*"), run=_091.say("QueueUnbind", exchange="events", routing_key="a.*")),
    Row(method="queue.delete", case="if empty", works_with="other", rights=("delete NAME",), run=_091.say("QueueDelete", if_empty=True)),
    Row(method="basic.publish", case="with CC", rights=("send other", "send NAME", "send copy"), run=_091.publish(key="other", headers={"CC": ["NAME", "copy"]})),
    Row(method="basic.publish", case="with BCC", rights=("send other", "send NAME"), run=_091.publish(key="other", headers={"BCC": ["NAME"]})),
    Row(method="basic.publish", case="with CC, to an exchange", rights=("send /exchanges/NAME/a", "send /exchanges/NAME/b", "send /exchanges/NAME/c"), run=_091.publish("NAME", "a", headers={"CC": ["b"], "BCC": ["c"]})),
    Row(method="basic.publish", case="with CC, in a transaction", hides=False, rights=("transact", "send other", "send NAME"), run=_091.publish(key="other", before="TxSelect", headers={"CC": ["NAME"]})),
)  # fmt: skip


def _free(methods: frozenset[str], rows: Iterable[Row], reasons: Mapping[str, str]) -> dict[str, str]:
    """The methods of whole classes that need no permission, by the beginnings of their names."""
    named = {row.method for row in rows}
    return {
        method: reason
        for method in methods - named
        for start, reason in reasons.items()
        if method == start or (start.endswith(".") and method.startswith(start))
    }


_METHODS_091: Final = _sent_by_clients(spec091.METHODS)
_REASONS: Final = {
    "connection.": _CONNECTION,
    "channel.": _CONNECTION,
    "access.request": "a ticket permits nothing by itself",
    **dict.fromkeys(
        (
            *("basic.qos", "basic.cancel", "basic.cancel-ok", "basic.ack", "basic.reject", "basic.nack"),
            *("basic.recover", "basic.recover-async", "confirm.select", "tx.commit", "tx.rollback"),
        ),
        _OWN,
    ),
}


@asynccontextmanager
async def _dial_091(container: amqp.Container) -> AsyncGenerator[Any]:
    async with script091.opened(container) as client:
        yield client


# -- 10.3 -----------------------------------------------------------------------------------

_FENCE: Final = spec103.BasicCancel(consumer_tag="none")
"""A method that is answered behind those before it, and does nothing."""

_103: Final = _Methods(spec103, _FENCE)


async def _publish_stream(client: Any, name: str) -> Any:
    await client.carry(spec103.StreamPublish(routing_key=name), b"x", StreamProperties())
    return _plain(await client.ask(_FENCE))


async def _publish_file(client: Any, name: str) -> Any:
    opened = await client.ask(spec103.FileOpen(identifier="f", content_size=1))
    assert opened.name == "file.open-ok", opened
    await client.carry(spec103.FileStage(), b"x", FileProperties())
    await client.say(spec103.FilePublish(routing_key=name, identifier="f"))
    return _plain(await client.ask(_FENCE))


async def _bind_cluster(client: Any, name: str) -> Any:
    await client.say(spec103.ClusterBind(exchange=name, routing_key="a.*"), channel=0)
    with trio.move_on_after(60):  # it has no answer, but for an alert if it is refused
        return _plain(await client.hear())
    return "nothing", {}


_ROWS_103: Final = (
    *_common(_103),
    Row(method="queue.declare", case="with dead letters", works_with=GONE, rights=("create NAME", "receive NAME", "send other"), run=_103.say("QueueDeclare", arguments={each.replace("-", "_"): value for each, value in _LETTERS.items()})),
    Row(method="file.consume", rights=("receive NAME",), run=_103.say("FileConsume", consumer_tag="c")),
    Row(method="stream.consume", rights=("receive NAME",), run=_103.say("StreamConsume", consumer_tag="c")),
    Row(method="stream.publish", rights=("send NAME",), run=_publish_stream),
    Row(method="file.publish", rights=("send NAME",), run=_publish_file),
    Row(method="dtx.select", rights=("transact",), hides=False, run=_bare(_103, "DtxSelect")),
    Row(method="cluster.bind", rights=("create", "receive /exchanges/NAME/a.*"), run=_bind_cluster),
)  # fmt: skip
_METHODS_103: Final = _sent_by_clients(spec103.METHODS)
_REASONS_103: Final = {
    **_REASONS,
    "test.": "it tests the codec",
    "cluster.": "the program's",
    "tunnel.": "the program's",
    **dict.fromkeys(
        (
            *("file.open", "file.open-ok", "file.stage", "file.ack", "file.reject", "file.cancel"),
            *("stream.cancel", "dtx.start"),
        ),
        _OWN,
    ),
}


def _refused_103(answer: Any) -> bool:
    return _closes(answer) or (answer[0] == "channel.alert" and answer[1]["reply_code"] == 403)


@asynccontextmanager
async def _dial_103(container: amqp.Container) -> AsyncGenerator[Any]:
    dialect = Amqp103(container, tickets=False, on_branch=lambda _branch: None)
    async with script103.opened(container, dialect=dialect) as client:
        yield client


# -- AMQP/Fast ------------------------------------------------------------------------------


async def _open_temporary(client: Any, name: str) -> Any:
    return await _on_handle(
        client, spec_fast.HandleOpen(channel_id=1, handle_id=2, temporary=True, dest_name=name)
    )


async def _on_handle(client: Any, command: Any) -> Any:
    heard = await client.ask(command)
    return heard.name, dict(heard)


def _command(name: str, **fields: Any) -> Callable[[Any, str], Awaitable[Any]]:
    async def run(client: Any, dest: str) -> Any:
        await client.handle("")
        return await _on_handle(client, getattr(spec_fast, name)(handle_id=1, dest_name=dest, **fields))

    return run


async def _send_fast(client: Any, name: str) -> Any:
    await client.handle("")
    await client.send(b"x", name=name, confirm=7)
    heard = await client.heard()
    return heard.name, dict(heard)


_ROWS_FAST: Final = (
    Row(method="handle open", case="of a temporary destination", rights=("create NAME",), works_with="mine", run=_open_temporary),
    Row(method="handle open", case="of a temporary destination without a name", rights=("create",), hides=False, run=lambda client, _: _open_temporary(client, "")),
    Row(method="handle send", rights=("send NAME",), run=_send_fast),
    Row(method="handle consume", below=True, rights=("receive NAME",), run=_command("HandleConsume", confirm_tag=7)),
    Row(method="handle consume", below=True, case="of a prefix", rights=("receive NAMEs/1",), run=lambda client, name: _command("HandleConsume", confirm_tag=7)(client, f"{name}s/")),
    Row(method="handle query", below=True, rights=("receive NAME",), run=_command("HandleQuery")),
)  # fmt: skip
_METHODS_FAST: Final = _sent_by_clients(spec_fast.COMMANDS)
_FREE_FAST: Final = {
    method: _CONNECTION if method.startswith("connection") else _OWN
    for method in _METHODS_FAST - {row.method for row in _ROWS_FAST}
}


# -- 1.0 and its draft ----------------------------------------------------------------------


async def _said(doing: Callable[[], Awaitable[object]]) -> Any:
    """What becomes of a call: ``("done", "")``, or the condition and the text of the refusal."""
    try:
        await doing()
    except (LinkDetachedError, DeliveryError) as refusal:
        return str(getattr(refusal, "condition", None)), str(refusal)
    return "done", ""


def _call(doing: Callable[[amqp.Connection, str], Awaitable[object]]) -> Callable[[Any, str], Awaitable[Any]]:
    async def run(client: Any, name: str) -> Any:
        return await _said(partial(doing, client, name))

    return run


async def _attach_sender(connection: amqp.Connection, name: str) -> None:
    async with connection.open_sender(name, name="link"):
        pass


async def _attach_receiver(connection: amqp.Connection, name: str) -> None:
    async with connection.open_receiver(name, name="link"):
        pass


async def _attach_dynamic(connection: amqp.Connection, _: str) -> None:
    async with connection.open_receiver(None, source=amqp.Source(dynamic=True)):
        pass


async def _send_by_relay(connection: amqp.Connection, name: str) -> None:
    async with connection.open_sender(None) as sender:
        await sender.send(amqp.Message(b"x", to=name))


async def _transact(connection: amqp.Connection, _: str) -> None:
    async with connection.open_transaction():
        pass


_ROWS_10: Final = (
    Row(method="Attach", case="to a target", rights=("send NAME",), run=_call(_attach_sender)),
    Row(method="Attach", case="to an exchange", rights=("send /exchanges/NAME/k",), run=_call(lambda connection, name: _attach_sender(connection, f"/exchanges/{name}/k"))),
    Row(method="Attach", case="to a source", rights=("receive NAME",), run=_call(_attach_receiver)),
    Row(method="Attach", case="to a dynamic source", rights=("create",), hides=False, run=_call(_attach_dynamic)),
    Row(method="Attach", case="to the coordinator", rights=("transact",), hides=False, run=_call(_transact)),
    Row(method="Transfer", case="to the anonymous terminus", rights=("send NAME",), run=_call(_send_by_relay)),
)  # fmt: skip


def _performatives(module: Any) -> frozenset[str]:
    """The names of all bodies of frames that a module of the specification has."""
    made = [each for each in vars(module).values() if isinstance(each, type)]
    return frozenset(
        each.__name__ for each in made if "frame" in getattr(getattr(each, "__amqp__", None), "provides", ())
    )


def _dial_10(dialect: Any) -> Callable[[amqp.Container], AbstractAsyncContextManager[Any]]:
    def dial(container: amqp.Container) -> AbstractAsyncContextManager[Any]:
        return container.connect(dialect=dialect)

    return dial


def _scripts_10(name: str, module: Any) -> Scripts:
    methods = _performatives(module)
    return Scripts(
        dial=_dial_10(name),
        methods=methods,
        rows=_ROWS_10,
        free=dict.fromkeys(methods - {row.method for row in _ROWS_10}, _CONNECTION),
        refused=lambda answer: answer[0] == "amqp:unauthorized-access",
        done=lambda answer: answer[0] == "done",
    )


SCRIPTS: Final[Mapping[str, Scripts]] = {
    "1.0": _scripts_10("1.0", transport),
    "1.0-draft-2010": _scripts_10("1.0-draft-2010", draft_transport),
    "0-9-1": Scripts(
        dial=_dial_091,
        methods=_METHODS_091,
        rows=_ROWS_091,
        free=_free(_METHODS_091, _ROWS_091, _REASONS),
        refused=_closes,
        done=lambda answer: not answer[0].endswith(".close"),
    ),
    "10.3": Scripts(
        dial=_dial_103,
        methods=_METHODS_103,
        rows=_ROWS_103,
        free=_free(_METHODS_103, _ROWS_103, _REASONS_103),
        refused=_refused_103,
        done=lambda answer: not answer[0].endswith((".close", ".alert")),
    ),
    "amqp-fast": Scripts(
        dial=script_fast.opened,
        methods=_METHODS_FAST,
        rows=_ROWS_FAST,
        free=_FREE_FAST,
        refused=lambda answer: answer[0].endswith("close") and answer[1]["reply_code"] == 403,
        done=lambda answer: not answer[0].endswith("close"),
    ),
}
"""By the name of the protocol."""
