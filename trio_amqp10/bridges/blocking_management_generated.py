"""Management of the container of a peer, without async.

``python -m tests.management_faces`` generates this module from ``container/management/remote_management.py``: change that, but not this.
"""

# ruff: noqa: A002, F401

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

from trio_amqp10.amqp10.message import Message  # noqa: TC001 - the manual reads annotations

from .blocking_bridge import Opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.management.listing import Page
    from trio_amqp10.container.management.remote_listing import RemoteListing as AsyncListing
    from trio_amqp10.container.management.remote_listing import RemoteReading as AsyncReading
    from trio_amqp10.container.management.remote_management import RemoteManagement as AsyncRemoteManagement
    from trio_amqp10.container.management.single_messages import Ending
    from trio_amqp10.container.management.status import (
        AccountStatus,
        BindingStatus,
        ChannelStatus,
        ConnectionStatus,
        ContainerStatus,
        ExchangeStatus,
        Imported,
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

    from .blocking_bridge import Bridge

T = TypeVar("T")


class RemoteListing(Generic[T]):
    """A list of things in the container of a peer.

    Read it with ``for``, or in pages, as ``trio_amqp10.container.management.RemoteListing``.
    """

    def __init__(self, bridge: Bridge, inner: AsyncListing[T]) -> None:
        self._bridge = bridge
        self._inner = inner

    def __iter__(self) -> RemoteReading[T]:
        """Iterate over all entries: those of one reply at a time."""
        return RemoteReading(self._bridge, self._inner.reading())

    def page(self, offset: int = 0, count: int = 500) -> Page[T]:
        """Return a page: at most ``count`` entries, after the first ``offset``.

        For its errors see the method of trio.
        """
        return self._bridge.run(lambda: self._inner.page(offset, count))

    def count(self) -> int:
        """Return the number of entries; for its errors see the method of trio."""
        return self._bridge.run(self._inner.count)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class RemoteReading(Generic[T]):
    """One reading of a list."""

    def __init__(self, bridge: Bridge, inner: AsyncReading[T]) -> None:
        self._bridge = bridge
        self._inner = inner
        self._entries: list[T] = []

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """Return the next entry."""
        if not self._entries:
            self._entries = (self._bridge.run(self._inner.some, self._inner.put_back))[::-1]
        if not self._entries:
            raise StopIteration
        return self._entries.pop()


class RemoteManagement(Opened["AsyncRemoteManagement"]):
    """The container of a peer, and what can be done with it.

    The calls and their results are those of ``Management``. Made by ``Connection.open_management``. Any number of threads may use it. The
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
    """

    def nodes(self, *, kind: str | None = None) -> RemoteListing[NodeStatus]:
        """Return the list of all nodes, or of one kind, each in its class."""
        return RemoteListing(self._bridge, self._inner.nodes(kind=kind))

    def queues(self) -> RemoteListing[QueueStatus]:
        """Return the list of all queues.

        Declared ones are included, and those of clients for their replies, whose addresses begin with ``temporary/``.
        """
        return RemoteListing(self._bridge, self._inner.queues())

    def topics(self) -> RemoteListing[TopicStatus]:
        """Return the list of all topics."""
        return RemoteListing(self._bridge, self._inner.topics())

    def exchanges(self) -> RemoteListing[ExchangeStatus]:
        """Return the list of all exchanges; empty without a broker."""
        return RemoteListing(self._bridge, self._inner.exchanges())

    def bindings(self) -> RemoteListing[BindingStatus]:
        """Return the list of all bindings; empty without a broker.

        The binding of each queue to the default exchange is not in it.
        """
        return RemoteListing(self._bridge, self._inner.bindings())

    def subscriptions(self) -> RemoteListing[SubscriptionStatus]:
        """Return the list of the subscriptions to all topics."""
        return RemoteListing(self._bridge, self._inner.subscriptions())

    def connections(self) -> RemoteListing[ConnectionStatus]:
        """Return the list of all connections, oldest first."""
        return RemoteListing(self._bridge, self._inner.connections())

    def channels(self) -> RemoteListing[ChannelStatus]:
        """Return the list of all sessions and channels."""
        return RemoteListing(self._bridge, self._inner.channels())

    def links(self, *, role: Literal["sender", "receiver"] | None = None) -> RemoteListing[LinkStatus]:
        """Return the list of all links, consumers and publishers.

        Args:
            role: ``"sender"`` for those on which the container sends: consumers; ``"receiver"`` for those on which it
                receives: publishers; None for both.
        """
        return RemoteListing(self._bridge, self._inner.links(role=role))

    def transactions(self) -> RemoteListing[TransactionStatus]:
        """Return the list of the transactions that have begun to work, and are not over."""
        return RemoteListing(self._bridge, self._inner.transactions())

    def users(self) -> RemoteListing[UserStatus]:
        """Return the list of the users that are connected or known, by name.

        Users whose names only a function knows are in it while they are connected.
        """
        return RemoteListing(self._bridge, self._inner.users())

    def accounts(self) -> RemoteListing[AccountStatus]:
        """Return the list of the usage of each connected identity; empty without quotas."""
        return RemoteListing(self._bridge, self._inner.accounts())

    def containers(self) -> RemoteListing[ContainerStatus]:
        """Return a list of the container alone, without the totals of its connections."""
        return RemoteListing(self._bridge, self._inner.containers())

    def virtual_hosts(self) -> RemoteListing[VirtualHostStatus]:
        """Return the list of the names by which peers ask for the container."""
        return RemoteListing(self._bridge, self._inner.virtual_hosts())

    def entities(self, kind: str) -> RemoteListing[dict[str, Any]]:
        """Return the list of all entities of a type, each with its attributes by name.

        Use it for types and attributes that statuses do not have, as of other products and versions.

        Args:
            kind: the type, e.g. ``"queue"``; ``"node"`` for all nodes.
        """
        return RemoteListing(self._bridge, self._inner.entities(kind))

    def entity(self, kind: str, identity: str) -> dict[str, Any]:
        """Return the attributes of one entity, by name.

        Args:
            kind: its type, e.g. ``"queue"``.
            identity: its identity; of a node its address.
        """
        return self._bridge.run(lambda: self._inner.entity(kind, identity))

    def describe(self) -> ContainerStatus:
        """Return the status of the container itself."""
        return self._bridge.run(self._inner.describe)

    def node(self, address: str, *, kind: str | None = None) -> NodeStatus:
        """Return the status of the node of this address, in the class for its kind.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.
        """
        return self._bridge.run(lambda: self._inner.node(address, kind=kind))

    def queue(self, address: str) -> QueueStatus:
        """Return the status of the queue of this address."""
        return self._bridge.run(lambda: self._inner.queue(address))

    def connection(self, number: int) -> ConnectionStatus:
        """Return the status of the connection of this number."""
        return self._bridge.run(lambda: self._inner.connection(number))

    def link(self, identity: str) -> LinkStatus:
        """Return the status of the link of this identity."""
        return self._bridge.run(lambda: self._inner.link(identity))

    def create_queue(self, address: str, **rules: Any) -> QueueStatus:
        """Create a queue, which exists again after a restart if there is a store.

        Args:
            address: its address.
            rules: as for ``Container.add_queue``.
        """
        return self._bridge.run(lambda: self._inner.create_queue(address, **rules))

    def create_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Create a topic, which exists again after a restart if there is a store.

        Args:
            address: its address.
            limits: as for ``Container.add_topic``.
        """
        return self._bridge.run(lambda: self._inner.create_topic(address, **limits))

    def set_queue(self, address: str, *, kind: str | None = None, **rules: Any) -> QueueStatus:
        """Change some rules of a queue; its messages stay.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.
            rules: those that change, as for ``Management.set_queue``.
        """
        return self._bridge.run(lambda: self._inner.set_queue(address, kind=kind, **rules))

    def set_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Change some limits of a topic; its subscriptions and their messages stay.

        Args:
            address: its address.
            limits: those that change, as for ``Container.add_topic``.
        """
        return self._bridge.run(lambda: self._inner.set_topic(address, **limits))

    def delete(
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
        """
        return self._bridge.run(
            lambda: self._inner.delete(address, kind=kind, if_empty=if_empty, if_unused=if_unused)
        )

    def purge(self, address: str) -> int:
        """Remove the ready and the delayed messages of a queue; return their number.

        Messages that arrive meanwhile stay, and those that a consumer has.
        """
        return self._bridge.run(lambda: self._inner.purge(address))

    def hold(self, address: str, seconds: float) -> None:
        """Let a queue take and give no messages for some time; see ``Management.hold``.

        Args:
            address: its address.
            seconds: how long, at most 600; 0 ends it now.
        """
        return self._bridge.run(lambda: self._inner.hold(address, seconds))

    def redirect(self, address: str, url: str | None) -> None:
        """Send all links of a queue to another place, and new ones too (2.8.18).

        Args:
            address: its address.
            url: the URL of the other place, with a host, a port and an address; None to accept links again.
        """
        return self._bridge.run(lambda: self._inner.redirect(address, url))

    def publish(self, address: str, message: Message | Any) -> bool:
        """Send a message to a node, and wait until the node accepts it.

        Args:
            address: the address of the node, ``/exchanges/NAME/KEY`` for an exchange and a routing key; no queue is created.
            message: bytes, str, any AMQP value, or a ``Message``.

        Returns:
            Whether a node has it: False if an exchange leads to no queue.
        """
        return self._bridge.run(lambda: self._inner.publish(address, message))

    def browse(
        self,
        address: str,
        count: int = 100,
        *,
        offset: int = 0,
        octets: int | None = None,
        filter: str | None = None,
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
        """
        return self._bridge.run(
            lambda: self._inner.browse(address, count, offset=offset, octets=octets, filter=filter)
        )

    def get(
        self,
        address: str,
        count: int = 1,
        *,
        outcome: Ending = "accept",
        octets: int | None = None,
        filter: str | None = None,
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
        """
        return self._bridge.run(
            lambda: self._inner.get(address, count, outcome=outcome, octets=octets, filter=filter)
        )

    def move(self, source: str, target: str, count: int | None = None, *, filter: str | None = None) -> int:
        """Move ready messages of a queue elsewhere, each exactly once; return the number.

        The container moves them itself, at most 1,000 for each request. See ``Management.move``.

        Args:
            source: the address of the queue.
            target: the address of the node, ``/exchanges/NAME/KEY`` for an exchange; it must exist.
            count: messages at most; None for as many as are ready at the beginning.
            filter: a selector of JMS that they must match; None for all.
        """
        return self._bridge.run(lambda: self._inner.move(source, target, count, filter=filter))

    def redrive(self, address: str, count: int | None = None, *, died_in: str | None = None) -> Redriven:
        """Send dead letters back to the queues where they died, each exactly once.

        The container moves them itself, at most 1,000 for each request. See ``Management.redrive``.

        Args:
            address: the address of the queue with the dead letters.
            count: messages at most; None for as many as are ready at the beginning.
            died_in: the queue whose dead letters go back, by name or address; None for all.
        """
        return self._bridge.run(lambda: self._inner.redrive(address, count, died_in=died_in))

    def declare_queue(
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
        """
        return self._bridge.run(
            lambda: self._inner.declare_queue(name, arguments, durable=durable, auto_delete=auto_delete)
        )

    def declare_exchange(
        self,
        name: str,
        type: str = "direct",
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
        """
        return self._bridge.run(
            lambda: self._inner.declare_exchange(
                name, type, arguments, durable=durable, auto_delete=auto_delete, internal=internal
            )
        )

    def exchange(self, name: str) -> ExchangeStatus:
        """Return the status of the exchange of this name; empty for the default one."""
        return self._bridge.run(lambda: self._inner.exchange(name))

    def route(self, exchange: str, key: str, headers: Mapping[str, Any] | None = None) -> list[QueueStatus]:
        """Return the queues that a message would reach, without a message.

        Queues that the user may not see are left out.

        Args:
            exchange: the name of the exchange; empty for the default one.
            key: the routing key of the message.
            headers: its headers; only exchanges of type headers read them.
        """
        return self._bridge.run(lambda: self._inner.route(exchange, key, headers))

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange with its bindings.

        Args:
            name: its name.
            if_unused: delete it only if it is the source of no binding.
        """
        return self._bridge.run(lambda: self._inner.delete_exchange(name, if_unused=if_unused))

    def bind(
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
        """
        return self._bridge.run(
            lambda: self._inner.bind(source, destination, key, arguments, destination_kind=destination_kind)
        )

    def unbind(
        self,
        source: str,
        destination: str,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        destination_kind: Literal["queue", "exchange"] = "queue",
    ) -> None:
        """Remove a binding, if it exists; see ``bind``."""
        return self._bridge.run(
            lambda: self._inner.unbind(source, destination, key, arguments, destination_kind=destination_kind)
        )

    def export_definitions(self) -> dict[str, Any]:
        """Return all queues, topics, exchanges and bindings, as values of JSON.

        They are those that the user may see. Exclusive and temporary queues are not among them.
        """
        return self._bridge.run(self._inner.export_definitions)

    def import_definitions(self, given: Mapping[str, Any], *, virtual_host: str | None = None) -> Imported:
        """Make the queues, topics, exchanges and bindings of an export.

        A definition that cannot be made is left out, and the others are made. See ``Management.import_definitions``.

        Args:
            given: what ``export_definitions`` returned; or the definitions of RabbitMQ, as parsed JSON.
            virtual_host: the virtual host of RabbitMQ whose definitions are imported; None for the only one, or ``"/"``.

        Returns:
            What was made, and what was left out, with the reason.
        """
        return self._bridge.run(lambda: self._inner.import_definitions(given, virtual_host=virtual_host))

    def close_connection(self, number: int, reason: str | None = None) -> None:
        """Close a connection with ``amqp:connection:forced``, or the like in its protocol.

        Does not wait for the peer of that connection. The call raises ``ConnectionClosedError`` if it is the connection of this object.

        Args:
            number: of the connection; see ``ConnectionStatus``.
            reason: the description of the error that its peer gets; None for the usual one.
        """
        return self._bridge.run(lambda: self._inner.close_connection(number, reason))

    def close_link(self, identity: str, reason: str | None = None) -> None:
        """End a link with ``amqp:link:detach-forced``, or the like in its protocol.

        A consumer of AMQP 0-9-1 is cancelled; of an address that it publishes to, messages that wait are refused.

        Args:
            identity: of the link; see ``LinkStatus``.
            reason: the description of the error that its peer gets; None for the usual one.
        """
        return self._bridge.run(lambda: self._inner.close_link(identity, reason))
