"""Management of the container of a peer: the calls of ``Container.management``.

``Connection.open_management`` returns it. Each call is a request to the node ``$management`` of the peer. The calls of ``aio`` and
``blocking`` are generated from this list (``python -m tests.management_faces``).

Knows the operations of a management node, and the statuses in its replies.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.peer.requester import open_requester
from trio_amqp10.broker.exchanges.addresses import exchange_address
from trio_amqp10.core.arguments import check_timeout
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.waiters import EnteredWithAsync

from .errors import ManagementError, OperationRefusedError
from .remote_listing import RemoteListing
from .remote_requests import RemoteRequests
from .status import (
    AccountStatus,
    BindingStatus,
    ChannelStatus,
    ConnectionStatus,
    ContainerStatus,
    ExchangeStatus,
    Imported,
    LeftOut,
    LinkStatus,
    MessageStatus,
    NodeStatus,
    QueueStatus,
    Redriven,
    SubscriptionStatus,
    TopicStatus,
    TransactionStatus,
    UserStatus,
    VirtualHostStatus,
)
from .status_values import as_list, from_values, read_counts, read_message_figures, write_arguments

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from types import TracebackType

    from trio_amqp10.amqp10.peer.link_carriers import LinkConnection

    from .remote_requests import Entity
    from .single_messages import Ending

S = TypeVar("S")

_FORM: Final = "status"
_WITHOUT_IDENTITY: Final = frozenset({"binding", "transaction"})
"""Types whose entities may have the same identity."""
_STEP: Final = 1000
"""Messages that one request moves."""
_MOST_BROWSED: Final = 500
_MOST_TAKEN: Final = 100
"""Messages in one reply at most."""


class RemoteManagement:
    """The container of a peer, and what can be done with it.

    The calls and their results are those of ``Management``. Made by ``Connection.open_management``. Any number of tasks may use it. The
    container handles its requests one after another, so open another one for work beside a long operation.

    Each call raises, besides what its docstring describes:

    - ``OperationRefusedError``, which is a ``ManagementError`` with the reason that ``Management`` gives: the peer refuses the
      operation, and has changed nothing, unless ``Management`` describes otherwise. The reason is ``"not-implemented"`` if the peer does
      not know the operation.
    - ``TimedOutError``, which is a ``trio.TooSlowError``: no reply came within ``timeout`` seconds. If ``sent`` is True, it is not known
      whether the operation was done; if False, it was not.
    - ``RemoteProtocolError``: the reply has another shape than that of a container.
    - ``LinkDetachedError``, ``SessionEndedError``, ``ConnectionClosedError``: the link was lost; ``sent`` as above. No operation is ever sent again automatically; on a connection with ``reconnect`` the next call waits until it is restored.
    - ``DeliveryRejectedError``: the request or its reply is too large for the peer.

    Cancelled: the operation may be done, or be done later. Nothing has changed if it only reads.
    """

    __slots__ = ("_requests",)

    def __init__(self, requests: RemoteRequests) -> None:
        self._requests = requests

    # -- lists ------------------------------------------------------------------------------

    def nodes(self, *, kind: str | None = None) -> RemoteListing[NodeStatus]:
        """Return the list of all nodes, or of one kind, each in its class."""
        return self._list(kind or "node", NodeStatus, ("address",))

    def queues(self) -> RemoteListing[QueueStatus]:
        """Return the list of all queues.

        Declared ones are included, and those of clients for their replies, whose addresses begin with ``temporary/``.
        """
        return self._list("queue", QueueStatus, ("address",))

    def topics(self) -> RemoteListing[TopicStatus]:
        """Return the list of all topics."""
        return self._list("topic", TopicStatus, ("address",))

    def exchanges(self) -> RemoteListing[ExchangeStatus]:
        """Return the list of all exchanges; empty without a broker."""
        return self._list("exchange", ExchangeStatus, ("address",))

    def bindings(self) -> RemoteListing[BindingStatus]:
        """Return the list of all bindings; empty without a broker.

        The binding of each queue to the default exchange is not in it.
        """
        return self._list("binding", BindingStatus, (), ("key",))

    def subscriptions(self) -> RemoteListing[SubscriptionStatus]:
        """Return the list of the subscriptions to all topics."""
        return self._list("subscription", SubscriptionStatus, ("topic", "container-id", "user", "name"))

    def connections(self) -> RemoteListing[ConnectionStatus]:
        """Return the list of all connections, oldest first."""
        return self._list("connection", ConnectionStatus, ("number",))

    def channels(self) -> RemoteListing[ChannelStatus]:
        """Return the list of all sessions and channels."""
        return self._list("channel", ChannelStatus, ("connection", "number"))

    def links(self, *, role: Literal["sender", "receiver"] | None = None) -> RemoteListing[LinkStatus]:
        """Return the list of all links, consumers and publishers.

        Args:
            role: ``"sender"`` for those on which the container sends: consumers; ``"receiver"`` for those on which it
                receives: publishers; None for both.
        """
        return self._list("link", LinkStatus, ("identity",), role=role)

    def transactions(self) -> RemoteListing[TransactionStatus]:
        """Return the list of the transactions that have begun to work, and are not over."""
        return self._list("transaction", TransactionStatus, (), ("connection",))

    def users(self) -> RemoteListing[UserStatus]:
        """Return the list of the users that are connected or known, by name.

        Users whose names only a function knows are in it while they are connected.
        """
        return self._list("user", UserStatus, ("name",))

    def accounts(self) -> RemoteListing[AccountStatus]:
        """Return the list of the usage of each connected identity; empty without quotas."""
        return self._list("account", AccountStatus, ("name",))

    def containers(self) -> RemoteListing[ContainerStatus]:
        """Return a list of the container alone, without the totals of its connections."""
        return self._list("container", ContainerStatus, ("name",))

    def virtual_hosts(self) -> RemoteListing[VirtualHostStatus]:
        """Return the list of the names by which peers ask for the container."""
        return self._list("virtual-host", VirtualHostStatus, ("name",))

    def entities(self, kind: str) -> RemoteListing[dict[str, Any]]:
        """Return the list of all entities of a type, each with its attributes by name.

        Use it for types and attributes that statuses do not have, as of other products and versions.

        Args:
            kind: the type, e.g. ``"queue"``; ``"node"`` for all nodes.
        """
        return RemoteListing(
            self._requests, kind, dict, () if kind in _WITHOUT_IDENTITY else ("identity", "name")
        )

    def _list(
        self,
        kind: str,
        cls: type[S],
        identity: tuple[str, ...],
        counted: tuple[str, ...] = (),
        **asked: Any,
    ) -> RemoteListing[S]:
        return RemoteListing(
            self._requests,
            kind,
            lambda entity: from_values(cls, entity),
            identity,
            counted,
            form=_FORM,
            **asked,
        )

    # -- one thing --------------------------------------------------------------------------

    async def entity(self, kind: str, identity: str) -> dict[str, Any]:
        """Return the attributes of one entity, by name.

        Args:
            kind: its type, e.g. ``"queue"``.
            identity: its identity; of a node its address.

        Cancelled: nothing has changed.
        """
        found = await self._requests.map_reply_to("READ", type=kind, identity=identity)
        return {str(name): value for name, value in found.items()}

    async def describe(self) -> ContainerStatus:
        """Return the status of the container itself.

        Cancelled: nothing has changed.
        """
        return await self._read(ContainerStatus, type="container")

    async def node(self, address: str, *, kind: str | None = None) -> NodeStatus:
        """Return the status of the node of this address, in the class for its kind.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.

        Cancelled: nothing has changed.
        """
        return await self._read(NodeStatus, type=kind or "node", identity=address)

    async def queue(self, address: str) -> QueueStatus:
        """Return the status of the queue of this address.

        Cancelled: nothing has changed.
        """
        return await self._read(QueueStatus, type="queue", identity=address)

    async def connection(self, number: int) -> ConnectionStatus:
        """Return the status of the connection of this number.

        Cancelled: nothing has changed.
        """
        return await self._read(ConnectionStatus, type="connection", identity=f"{number}")

    async def link(self, identity: str) -> LinkStatus:
        """Return the status of the link of this identity.

        Cancelled: nothing has changed.
        """
        return await self._read(LinkStatus, type="link", identity=identity)

    async def _read(self, cls: type[S], **asked: Any) -> S:
        return self._as_status("READ", cls, await self._requests.reply_to("READ", form=_FORM, **asked))

    def _as_status(self, operation: str, cls: type[S], values: Any) -> S:
        try:
            return from_values(cls, values)
        except ValueError as fault:
            raise self._requests.fault(operation, str(fault)) from fault

    # -- queues and topics ------------------------------------------------------------------

    async def create_queue(self, address: str, **rules: Any) -> QueueStatus:
        """Create a queue, which exists again after a restart if there is a store.

        Args:
            address: its address.
            rules: as for ``Container.add_queue``.

        Cancelled: it may exist or not.
        """
        return await self._change("CREATE", QueueStatus, rules, type="queue", name=address)

    async def create_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Create a topic, which exists again after a restart if there is a store.

        Args:
            address: its address.
            limits: as for ``Container.add_topic``.

        Cancelled: it may exist or not.
        """
        return await self._change("CREATE", TopicStatus, limits, type="topic", name=address)

    async def set_queue(self, address: str, *, kind: str | None = None, **rules: Any) -> QueueStatus:
        """Change some rules of a queue; its messages stay.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.
            rules: those that change, as for ``Management.set_queue``.

        Cancelled: the rules may be changed or not.
        """
        return await self._change("UPDATE", QueueStatus, rules, type=kind or "node", identity=address)

    async def set_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Change some limits of a topic; its subscriptions and their messages stay.

        Args:
            address: its address.
            limits: those that change, as for ``Container.add_topic``.

        Cancelled: the limits may be changed or not.
        """
        return await self._change("UPDATE", TopicStatus, limits, type="topic", identity=address)

    async def _change(self, operation: str, cls: type[S], rules: Mapping[str, Any], **asked: Any) -> S:
        body = {name.replace("_", "-"): value for name, value in rules.items()}
        return self._as_status(
            operation, cls, await self._requests.reply_to(operation, body, form=_FORM, **asked)
        )

    async def delete(
        self, address: str, *, kind: str | None = None, if_empty: bool = False, if_unused: bool = False
    ) -> int:
        """Delete a queue or a topic: its links end, and its messages are deleted.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.
            if_empty: delete it only if no message is ready.
            if_unused: delete it only if it has no consumer.

        Returns:
            The number of messages that were ready; 0 for a topic.

        Cancelled: it may be deleted or not.
        """
        return await self._count(
            "DELETE",
            type=kind or "node",
            identity=address,
            if_empty=if_empty or None,
            if_unused=if_unused or None,
            form=_FORM,
        )

    async def purge(self, address: str) -> int:
        """Remove the ready and the delayed messages of a queue; return their number.

        Messages that arrive meanwhile stay, and those that a consumer has.

        Cancelled: they may be removed or not.
        """
        return await self._count("PURGE", identity=address)

    async def _count(self, operation: str, **asked: Any) -> int:
        reply = await self._requests.map_reply_to(operation, **asked)
        return self._counts_in(operation, {"count": reply.get("count")})["count"]

    def _counts_in(self, operation: str, values: Any) -> dict[str, int]:
        try:
            return read_counts("counts", values)
        except ValueError as fault:
            raise self._requests.fault(operation, str(fault)) from fault

    # -- handing over -----------------------------------------------------------------------

    async def hold(self, address: str, seconds: float) -> None:
        """Let a queue take and give no messages for some time; see ``Management.hold``.

        Args:
            address: its address.
            seconds: how long, at most 600; 0 ends it now.

        Cancelled: it may be held or not.
        """
        await self._requests.reply_to("HOLD", identity=address, seconds=seconds)

    async def redirect(self, address: str, url: str | None) -> None:
        """Send all links of a queue to another place, and new ones too (2.8.18).

        Args:
            address: its address.
            url: the URL of the other place, with a host, a port and an address; None to accept links again.

        Cancelled: links may be redirected or not.
        """
        await self._requests.reply_to("REDIRECT", identity=address, target=url)

    # -- messages ---------------------------------------------------------------------------

    async def publish(self, address: str, message: Message | Any) -> bool:
        """Send a message to a node, and wait until the node accepts it.

        Args:
            address: the address of the node, ``/exchanges/NAME/KEY`` for an exchange and a routing key; no queue is created.
            message: bytes, str, any AMQP value, or a ``Message``.

        Returns:
            Whether a node has it: False if an exchange leads to no queue.

        Cancelled: the node may have the message or not.
        """
        made = message if isinstance(message, Message) else Message(message)
        try:
            body = {"message": made.to_payload()}
        except LocalProtocolError as fault:
            raise ManagementError("invalid", str(fault)) from fault
        routed = (await self._requests.map_reply_to("PUBLISH", body, identity=address)).get("routed")
        if not isinstance(routed, bool):
            raise self._requests.fault("PUBLISH", f"routed={routed!r:.64}: expected true or false")
        return routed

    async def browse(
        self,
        address: str,
        count: int = 100,
        *,
        offset: int = 0,
        octets: int | None = None,
        filter: str | None = None,  # noqa: A002
    ) -> list[MessageStatus]:
        """Look at the ready messages of a queue in their order, without taking them.

        More than 500 messages or a megabyte come in several replies: messages that come or go meanwhile may be among
        them or not, and if some go, another may be left out.

        Args:
            address: the address of the queue.
            count: messages at most.
            offset: messages to skip before.
            octets: of these messages together at most; a larger message is returned alone. None for any number.
            filter: a selector of JMS that they must match; None for all.

        Cancelled: nothing has changed.
        """
        found: list[MessageStatus] = []
        while True:
            some = await self._messages(
                "BROWSE",
                address,
                offset=offset + len(found),
                count=min(count - len(found), _MOST_BROWSED),
                octets=octets,
                filter=filter,
            )
            for each in some:
                if octets is not None:
                    if each.octets > octets and found:
                        return found
                    octets = max(0, octets - each.octets)
                found.append(each)
            if not some or len(found) >= count:
                return found

    async def get(
        self,
        address: str,
        count: int = 1,
        *,
        outcome: Ending = "accept",
        octets: int | None = None,
        filter: str | None = None,  # noqa: A002
    ) -> list[MessageStatus]:
        """Take ready messages of a queue, each with the same outcome.

        Messages that were accepted are lost if their reply is: to process messages, use a receiver.

        Args:
            address: the address of the queue.
            count: messages at most; 100 to release them.
            outcome: ``"accept"``: they are gone; ``"release"``: they return to their places; ``"reject"``: they die, and go
                to the dead-letter address if there is one.
            octets: take no further message once these together have so many; None for any number. Each reply ends with the message that
                exceeds a megabyte.
            filter: a selector of JMS that they must match; None for all.

        Cancelled: some may have been taken.
        """
        if outcome == "release" and count > _MOST_TAKEN:
            raise ManagementError(
                "invalid",
                f"count={count}: expected at most {_MOST_TAKEN} with outcome='release'; use browse() for more",
            )
        found: list[MessageStatus] = []
        while True:
            some = await self._messages(
                "GET",
                address,
                count=min(count - len(found), _MOST_TAKEN),
                outcome=outcome,
                octets=octets,
                filter=filter,
            )
            found += some
            if octets is not None:
                octets = max(0, octets - sum(each.octets for each in some))
            if not some or len(found) >= count or octets == 0 or outcome == "release":
                return found

    async def _messages(self, operation: str, address: str, **asked: Any) -> list[MessageStatus]:
        reply = await self._requests.map_reply_to(operation, identity=address, **asked)
        found = as_list(reply.get("messages"))
        if found is None:
            raise self._requests.fault(operation, f"messages={reply.get('messages')!r:.64}: expected a list")
        try:
            return [_message_status(address, each) for each in found]
        except (ValueError, RemoteProtocolError) as fault:
            raise self._requests.fault(operation, str(fault)) from fault

    async def move(
        self,
        source: str,
        target: str,
        count: int | None = None,
        *,
        filter: str | None = None,  # noqa: A002
    ) -> int:
        """Move ready messages of a queue elsewhere, each exactly once; return the number.

        The container moves them itself, at most 1,000 for each request. See ``Management.move``.

        Args:
            source: the address of the queue.
            target: the address of the node, ``/exchanges/NAME/KEY`` for an exchange; it must exist.
            count: messages at most; None for as many as are ready at the beginning.
            filter: a selector of JMS that they must match; None for all.

        Cancelled: every message is at exactly one of the two. A request that was sent may move up to 1,000 more.
        """
        most = (await self.queue(source)).ready if count is None else count
        moved = 0
        while True:
            step = min(_STEP, most - moved)
            with _counting(moved):
                done = await self._count("MOVE", identity=source, target=target, count=step, filter=filter)
            moved += done
            if done < step or moved >= most:
                return moved

    async def redrive(
        self, address: str, count: int | None = None, *, died_in: str | None = None
    ) -> Redriven:
        """Send dead letters back to the queues where they died, each exactly once.

        The container moves them itself, at most 1,000 for each request. See ``Management.redrive``.

        Args:
            address: the address of the queue with the dead letters.
            count: messages at most; None for as many as are ready at the beginning.
            died_in: the queue whose dead letters go back, by name or address; None for all.

        Cancelled: every message is at exactly one of the queues. A request that was sent may move up to 1,000 more.
        """
        most = (await self.queue(address)).ready if count is None else count
        moved: dict[str, int] = {}
        while True:
            step = min(_STEP, most - sum(moved.values()))
            with _counting(sum(moved.values())):
                reply = await self._requests.map_reply_to(
                    "REDRIVE", identity=address, count=step, died_in=died_in
                )
            done = self._counts_in("REDRIVE", reply.get("moved"))
            left = self._counts_in("REDRIVE", {"left": reply.get("left")})["left"]
            for each, number in done.items():
                moved[each] = moved.get(each, 0) + number
            if sum(done.values()) < step or sum(moved.values()) >= most:
                return Redriven(moved=moved, left=left)

    # -- exchanges and bindings -------------------------------------------------------------

    async def declare_queue(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        durable: bool = True,
        auto_delete: bool = False,
    ) -> QueueStatus:
        """Declare a queue of the broker, as a client of AMQP 0-9-1 does.

        Args:
            name: its name; empty to generate one.
            arguments: its arguments, ``x-message-ttl`` and the like.
            durable: whether it survives the process, with a store.
            auto_delete: whether it is deleted with its last consumer.

        Cancelled: it may exist or not.
        """
        body = {"arguments": _json_of(arguments), "durable": durable, "auto-delete": auto_delete}
        reply = await self._requests.reply_to("DECLARE", body, form=_FORM, type="queue", name=name)
        return self._as_status("DECLARE", QueueStatus, reply)

    async def declare_exchange(
        self,
        name: str,
        type: str = "direct",  # noqa: A002 - the word of AMQP 0-9-1
        arguments: Mapping[str, Any] | None = None,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
    ) -> ExchangeStatus:
        """Declare an exchange.

        Args:
            name: its name.
            type: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
            arguments: ``alternate-exchange`` names the exchange for messages that match no binding.
            durable: whether it survives the process, with a store.
            auto_delete: whether it is deleted with its last binding.
            internal: whether only exchanges send to it.

        Cancelled: it may exist or not.
        """
        body = {
            "type": type,
            "arguments": _json_of(arguments),
            "durable": durable,
            "auto-delete": auto_delete,
            "internal": internal,
        }
        reply = await self._requests.reply_to("DECLARE", body, form=_FORM, **_exchange(name))
        return self._as_status("DECLARE", ExchangeStatus, reply)

    async def exchange(self, name: str) -> ExchangeStatus:
        """Return the status of the exchange of this name; empty for the default one.

        Cancelled: nothing has changed.
        """
        return await self._read(ExchangeStatus, **_exchange(name))

    async def route(
        self, exchange: str, key: str, headers: Mapping[str, Any] | None = None
    ) -> list[QueueStatus]:
        """Return the queues that a message would reach, without a message.

        Queues that the user may not see are left out.

        Args:
            exchange: the name of the exchange; empty for the default one.
            key: the routing key of the message.
            headers: its headers; only exchanges of type headers read them.

        Cancelled: nothing has changed.
        """
        body = {"key": key, "headers": _json_of(headers)}
        found: list[QueueStatus] = []
        more: Any = True
        while more:
            reply = await self._requests.map_reply_to(
                "ROUTE", body, form=_FORM, offset=len(found), **_exchange(exchange)
            )
            queues, more = as_list(reply.get("queues")), reply.get("more")
            if queues is None or not isinstance(more, bool) or (more and not queues):
                raise self._requests.fault(
                    "ROUTE", f"queues={reply.get('queues')!r:.64}, more={more!r:.64}: expected some of a list"
                )
            found += (self._as_status("ROUTE", QueueStatus, each) for each in queues)
        return found

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange with its bindings.

        Args:
            name: its name.
            if_unused: delete it only if it is the source of no binding.

        Cancelled: it may be deleted or not.
        """
        await self._requests.reply_to("DELETE", if_unused=if_unused or None, **_exchange(name))

    async def bind(
        self,
        source: str,
        destination: str,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        destination_kind: Literal["queue", "exchange"] = "queue",
    ) -> BindingStatus:
        """Bind a queue or an exchange to an exchange.

        Args:
            source: the name of the exchange.
            destination: the name of the queue or of the other exchange.
            key: the key of the binding.
            arguments: compared with headers.
            destination_kind: the kind of the destination.

        Cancelled: the binding may exist or not.
        """
        body = _binding(source, destination, key, arguments, destination_kind)
        reply = await self._requests.reply_to("BIND", body, form=_FORM, type="binding")
        return self._as_status("BIND", BindingStatus, reply)

    async def unbind(
        self,
        source: str,
        destination: str,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        destination_kind: Literal["queue", "exchange"] = "queue",
    ) -> None:
        """Remove a binding, if it exists; see ``bind``.

        Cancelled: the binding may be removed or not.
        """
        body = _binding(source, destination, key, arguments, destination_kind)
        await self._requests.reply_to("UNBIND", body, type="binding")

    # -- definitions ------------------------------------------------------------------------

    async def export_definitions(self) -> dict[str, Any]:
        """Return all queues, topics, exchanges and bindings, as values of JSON.

        They are those that the user may see. Exclusive and temporary queues are not among them.

        Cancelled: nothing has changed.
        """
        text = (await self._requests.node_reply_to("EXPORT")).get("definitions")
        try:
            found: Any = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._requests.fault("EXPORT", f"definitions={text!r:.64}: expected an object of JSON")
        return cast("dict[str, Any]", found)

    async def import_definitions(
        self, given: Mapping[str, Any], *, virtual_host: str | None = None
    ) -> Imported:
        """Make the queues, topics, exchanges and bindings of an export.

        A definition that cannot be made is left out, and the others are made. See ``Management.import_definitions``.

        Args:
            given: what ``export_definitions`` returned; or the definitions of RabbitMQ, as parsed JSON.
            virtual_host: the virtual host of RabbitMQ whose definitions are imported; None for the only one, or ``"/"``.

        Returns:
            What was made, and what was left out, with the reason.

        Cancelled: some of it may be made; import it again.
        """
        try:
            text = json.dumps(given)
        except (TypeError, ValueError) as fault:
            raise ManagementError(
                "invalid", f"given={given!r:.60}: expected values of JSON; {fault}"
            ) from fault
        reply = await self._requests.node_reply_to("IMPORT", {"definitions": text}, virtual_host=virtual_host)
        left = as_list(reply.get("left-out"))
        if left is None or not all(map(_is_left_out, left)):
            raise self._requests.fault(
                "IMPORT", f"left-out={reply.get('left-out')!r:.64}: expected lists of three strings"
            )
        return Imported(
            made=self._counts_in("IMPORT", reply.get("made")),
            left_out=tuple(LeftOut(kind=kind, name=name, reason=reason) for kind, name, reason in left),
        )

    # -- connections and links --------------------------------------------------------------

    async def close_connection(self, number: int, reason: str | None = None) -> None:
        """Close a connection with ``amqp:connection:forced``, or the like in its protocol.

        Does not wait for the peer of that connection. The call raises ``ConnectionClosedError`` if it is the connection of this object.

        Args:
            number: of the connection; see ``ConnectionStatus``.
            reason: the description of the error that its peer gets; None for the usual one.

        Cancelled: it may be closed or not.
        """
        await self._requests.reply_to("DELETE", type="connection", identity=f"{number}", reason=reason)

    async def close_link(self, identity: str, reason: str | None = None) -> None:
        """End a link with ``amqp:link:detach-forced``, or the like in its protocol.

        A consumer of AMQP 0-9-1 is cancelled; of an address that it publishes to, messages that wait are refused.

        Args:
            identity: of the link; see ``LinkStatus``.
            reason: the description of the error that its peer gets; None for the usual one.

        Cancelled: it may be ended or not.
        """
        await self._requests.reply_to("DELETE", type="link", identity=identity, reason=reason)

    def __repr__(self) -> str:
        return f"<RemoteManagement at {self._requests.address!r}>"


def _exchange(name: str) -> dict[str, str]:
    """Return the properties of a request that name an exchange."""
    return {"type": "exchange", "identity": exchange_address(name)}


def _binding(
    source: str, destination: str, key: str, arguments: Mapping[str, Any] | None, destination_kind: str
) -> dict[str, Any]:
    """Return the body of a request that binds."""
    return {
        "source": source,
        "destination": destination,
        "key": key,
        "arguments": _json_of(arguments),
        "destination-kind": destination_kind,
    }


def _json_of(arguments: Mapping[str, Any] | None) -> str | None:
    """Return arguments or headers as JSON.

    Raises:
        ManagementError: they have a value that AMQP 0-9-1 has not.
    """
    if arguments is None:
        return None
    try:
        return write_arguments(arguments)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ManagementError(
            "invalid", f"arguments {', '.join(arguments)!r:.60}: expected values of AMQP 0-9-1; {fault}"
        ) from fault


@contextmanager
def _counting(moved: int) -> Generator[None]:
    """Add to a refusal how many messages requests before it have moved."""
    try:
        yield
    except OperationRefusedError as refused:
        if not moved:
            raise
        raise OperationRefusedError(
            refused.operation,
            refused.status,
            f"{refused.description}; {moved} messages were moved before, in earlier steps",
        ) from None


def _message_status(queue: str, entity: Entity | Any) -> MessageStatus:
    from trio_amqp10.amqp10.server.native_message import received  # only messages need a part of the server

    figures, payload = read_message_figures(entity)
    return MessageStatus(
        queue=queue, message=Message.from_payload(payload), content=received(0, payload), **figures
    )


def _is_left_out(row: Any) -> bool:
    texts = as_list(row)
    return texts is not None and len(texts) == 3 and all(isinstance(each, str) for each in texts)


class RemoteManagementOpening(EnteredWithAsync):
    """Management of a peer that is not opened yet: enter it with ``async with``.

    Args:
        connection: the connection to the peer.
        address: the address of its management node.
        timeout: seconds to wait for each reply; None for any time.
    """

    def __init__(self, connection: LinkConnection, address: str, timeout: float | None) -> None:
        if timeout is not None:
            check_timeout(timeout)
        self._opening = open_requester(connection, address)
        self._address = address
        self._timeout = timeout

    async def __aenter__(self) -> RemoteManagement:
        try:
            requester = await self._opening.__aenter__()
        except LinkRefusedError as refused:
            if refused.condition != Condition.NOT_FOUND.value:
                raise
            raise LinkRefusedError(
                f'{refused}: a container has it after add_management(), or with "amqp10 serve --management"',
                refused.error,
            ) from None
        return RemoteManagement(RemoteRequests(requester, self._address, self._timeout))

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._opening.__aexit__(kind, exc, tb)
