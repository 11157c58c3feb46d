"""Management: one plain object by which a container is operated.

``$management``, the command line and HTTP are faces of it, without logic of their own. The program uses
``container.management``, which asks for no permission. A face uses ``on_behalf_of`` the peer or the user that asks: the
same object, whose operations ask ``authorise``.

======================================  =================================================================================
operation                               needs one of these permissions
======================================  =================================================================================
see a node                              ``receive``, ``send``, ``create``, ``delete``, ``monitor`` or ``manage`` at its
                                        address; others are left out of lists, and do not exist for the reader
see what is no node                     ``receive``, ``monitor`` or ``manage`` at ``$management/TYPE``, where the type is
                                        ``connection``, ``channel``, ``link``, ``transaction``, ``user``,
                                        ``account``, ``virtual-host`` or ``container``
create, change or declare               ``create`` or ``manage``; with dead letters also ``receive`` or ``manage`` of the queue,
                                        and ``send`` or ``manage`` of their address
delete                                  ``delete`` or ``manage``
purge, browse, get                      ``receive`` or ``manage``
publish                                 ``send`` or ``manage``
move                                    ``receive`` or ``manage`` of the source, ``send`` or ``manage`` of the target
redrive                                 ``receive`` or ``manage`` of the queue, and ``send`` or ``manage`` of each queue that
                                        messages go back to
bind, unbind                            as in AMQP 0-9-1; or ``manage`` at the same addresses
close a connection or a link            ``delete`` or ``manage`` at ``$management/connection`` or ``$management/link``
watch the frames of a connection        ``manage`` at ``$management/connection``
======================================  =================================================================================

The permission is asked before anything is looked up, so a refusal is the same whether the thing exists or not.

Every operation does all or nothing, unless its docstring describes otherwise. Long ones pause each millisecond, so that the
peers are served meanwhile.

Knows the container and its nodes; knows no request and no protocol.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.exchanges.addresses import RESERVED, exchange_address
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.faults import (
    AccessRefusedError,
    BrokerError,
    InequivalentError,
    NotFoundError,
    PreconditionError,
)
from trio_amqp10.broker.nodes.node import RefusedError, label
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.broker.rights import broker_rights
from trio_amqp10.broker.rights.access import shown
from trio_amqp10.broker.stores.base import StoreError, until_done
from trio_amqp10.broker.stores.node_settings import NodeSetting
from trio_amqp10.container.cbs import ADDRESS as TOKENS
from trio_amqp10.core.errors import Condition, LocalProtocolError

from . import definitions, single_messages, status_builders
from .change_log import CHANGES, Asker, logged
from .depths import queue_depths
from .errors import ManagementError
from .frame_watch import MOST_PAYLOAD, MOST_WATCHES, FrameWatch
from .listing import Listing
from .moving import Origins, Transfer
from .pace import take_in_turns, take_paced
from .permissions import Permissions, or_manage, to_see
from .redirecting import place_of
from .status import Redriven
from .survey import MOST_QUEUES, add_status, survey
from .unconnected_user import UnconnectedUser

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from trio_amqp10.broker.exchanges.exchanges import Exchange
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.turns import Resumer
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.access import Action
    from trio_amqp10.broker.rights.guard import Need
    from trio_amqp10.broker.stores.base import Done
    from trio_amqp10.sasl import Identity

    from .depths import QueueDepths
    from .listing import Kind
    from .managed_container import ManagedContainer
    from .single_messages import Ending
    from .status import (
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
        SubscriptionStatus,
        Survey,
        TopicStatus,
        TransactionStatus,
        UserStatus,
        VirtualHostStatus,
    )

T = TypeVar("T")

PLACE: Final = "$management"
"""The beginning of addresses for permissions on what is not a node.

For connections, for example, at ``$management/connection``.
"""

_LIMITS: Final = ("max_backlog", "overflow", "max_subscriptions")
_CLOSED: Final = "closed by management"
_LONGEST_HOLD: Final = 600
_AT_ONCE: Final = 256
"""Messages of a queue that is deleted without steps."""


class Management:
    """All that there is in a container, and what can be done with it.

    ``Container.management`` is the one of the program, which may do everything.

    Args:
        container: the container.
        permissions: the permissions of the one who manages; None for the program itself.
        place: permissions for things that are no nodes are asked for at addresses that begin with this.
    """

    __slots__ = ("_container", "_permissions", "_place")

    def __init__(
        self, container: ManagedContainer, permissions: Permissions | None = None, place: str = PLACE
    ) -> None:
        self._container = container
        self._permissions = permissions or Permissions(None)
        self._place = place

    def on_behalf_of(
        self,
        who: ConnectedPeer | Identity | None,
        *,
        place: str = PLACE,
        face: str | None = None,
        host: str | None = None,
    ) -> Management:
        """Return the same operations, which ask whether this peer or user may do them.

        Each change, and each that is refused, is a line in the log ``trio_amqp10.management``.

        Args:
            who: a connected peer, with the claims of its tokens; or an authenticated identity without a connection; or None
                for one that is not authenticated.
            place: permissions for things that are no nodes are asked for at addresses that begin with this.
            face: the way by which it asks, for the log, e.g. ``"HTTP"``.
            host: the IP address of one without a connection, for the log.
        """
        container = self._container
        guard = getattr(who, "guard", None)
        if guard is not None:
            return _OnBehalf(container, Permissions(guard), place, Asker.of(who, face))
        user = UnconnectedUser(cast("Identity | None", who), container.name, host)
        permissions = Permissions(container.guard_for(user), user)
        return _OnBehalf(container, permissions, place, Asker.of(user, face))

    @property
    def limited(self) -> bool:
        """Whether anything can be refused for lack of a permission."""
        return self._permissions.limited

    @property
    def container_name(self) -> str:
        """The name of the container."""
        return self._container.name

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names by which peers ask for this container; ``/`` if it serves alone."""
        return self._container.virtual_hosts or ("/",)

    def queue_address(self, name: str) -> str:
        """Return the address of the queue that has this name in AMQP 0-9-1."""
        broker = self._container.broker
        return name if broker is None else broker.queue_address(name)

    # -- lists ------------------------------------------------------------------------------

    def nodes(self, *, kind: str | None = None) -> Listing[NodeStatus]:
        """Return the list of all nodes, or of one kind, each in its class."""
        return self._list(partial(status_builders.nodes, kind=kind))

    def queues(self) -> Listing[QueueStatus]:
        """Return the list of all queues.

        Declared ones are included, and those of clients for their replies, whose addresses begin with ``temporary/``.
        """
        return self._list(partial(status_builders.nodes, cls=Queue))

    def topics(self) -> Listing[TopicStatus]:
        """Return the list of all topics."""
        return self._list(partial(status_builders.nodes, cls=Topic))

    def exchanges(self) -> Listing[ExchangeStatus]:
        """Return the list of all exchanges; empty without a broker."""
        return self._list(status_builders.exchanges)

    def bindings(self) -> Listing[BindingStatus]:
        """Return the list of all bindings; empty without a broker.

        The binding of each queue to the default exchange is not in it.
        """
        return self._list(status_builders.bindings)

    def subscriptions(self) -> Listing[SubscriptionStatus]:
        """Return the list of the subscriptions to all topics."""
        return self._list(status_builders.subscriptions)

    def connections(self) -> Listing[ConnectionStatus]:
        """Return the list of all connections, oldest first."""
        return self._list(status_builders.connections, "connection")

    def channels(self) -> Listing[ChannelStatus]:
        """Return the list of all sessions and channels."""
        return self._list(status_builders.channels, "channel")

    def links(self, *, role: Literal["sender", "receiver"] | None = None) -> Listing[LinkStatus]:
        """Return the list of all links, consumers and publishers.

        Args:
            role: ``"sender"`` for those on which the container sends: consumers; ``"receiver"`` for those on which it
                receives: publishers; None for both.
        """
        return self._list(partial(status_builders.links, role=role), "link")

    def transactions(self) -> Listing[TransactionStatus]:
        """Return the list of the transactions that have begun to work, and are not over."""
        return self._list(status_builders.transactions, "transaction")

    def users(self) -> Listing[UserStatus]:
        """Return the list of the users that are connected or known, by name.

        Users whose names only a function knows are in it while they are connected.
        """
        return self._list(status_builders.users, "user")

    def accounts(self) -> Listing[AccountStatus]:
        """Return the list of the usage of each connected identity; empty without quotas."""
        return self._list(status_builders.accounts, "account")

    def containers(self) -> Listing[ContainerStatus]:
        """Return a list of the container alone, without the totals of its connections."""
        return self._list(status_builders.containers, "container")

    def virtual_hosts(self) -> Listing[VirtualHostStatus]:
        """Return the list of the names by which peers ask for this container."""
        return self._list(status_builders.virtual_hosts, "virtual-host")

    def _list(self, things: Callable[[ManagedContainer], Kind], watched: str | None = None) -> Listing[Any]:
        needs = [] if watched is None else [self._to_watch(watched)]
        return Listing(things(self._container), self._permissions, needs)

    async def may_watch(self, kind: str) -> bool:
        """Whether things of this kind may be seen, e.g. ``"connection"``.

        Cancelled: the answer is not known.
        """
        try:
            await self._permissions.check([self._to_watch(kind)])
        except ManagementError:
            return False
        return True

    def _to_watch(self, kind: str) -> Need:
        """Return the permissions, any of which shows things of this kind."""
        return tuple((action, f"{self._place}/{kind}") for action in _TO_WATCH)

    # -- one thing --------------------------------------------------------------------------

    async def describe(self) -> ContainerStatus:
        """Return the status of the container itself.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([self._to_watch("container")])
        return await status_builders.of_container(self._container)

    async def check_store(self) -> None:
        """Write a row to the store, and wait until it is safe.

        Without a store, do nothing. The row has no meaning.

        Raises:
            ManagementError: ``"forbidden"``; or ``"store-failed"``.

        Cancelled: it is written all the same, unless the store fails.
        """
        await self._permissions.check([self._to_watch("container")])
        probe = self._container.probe
        if probe is not None:
            try:
                await probe.write(self._container.clock.wall())
            except StoreError as failure:
                raise ManagementError("store-failed", str(failure)) from failure

    async def survey(self, named: Callable[[str], bool] | None = None, *, most: int = MOST_QUEUES) -> Survey:
        """Return the figures of the whole container, for a collector of metrics.

        Args:
            named: whether a queue of this address gets a status of its own, if the reader may see it; None: no queue. All
                other queues are added up.
            most: the most queues with a status of their own.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([self._to_watch("container")])
        found = await take_paced(survey(self._container, named or _no_queue, most))
        if not self._permissions.limited:
            return found
        seen: list[QueueStatus] = []
        for queue in found.queues:
            if await self._permissions.may_see(queue.address):
                seen.append(queue)
            else:
                add_status(found.rest, queue)
        return replace(found, queues=tuple(seen))

    async def depths(self, *, most: int = 10_000, most_full: int = 20) -> QueueDepths:
        """Return the depth of each queue that the reader may see, and the full queues.

        Args:
            most: the most queues with a depth of their own, the oldest first.
            most_full: the most full queues.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([self._to_watch("container")])
        found = await take_paced(queue_depths(self._container, most, most_full))
        if not self._permissions.limited:
            return found
        seen = {name for name in {*found.messages, *found.full} if await self._permissions.may_see(name)}
        return replace(
            found,
            messages={name: depth for name, depth in found.messages.items() if name in seen},
            full=tuple(name for name in found.full if name in seen),
        )

    async def node(self, address: str, *, kind: str | None = None) -> NodeStatus:
        """Return the status of the node of this address, in the class for its kind.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        address = self._container.resolve(address)
        await self._permissions.check([to_see(address)])
        return status_builders.node_status(self._container, self._find(address, kind))

    async def queue(self, address: str) -> QueueStatus:
        """Return the status of the queue of this address.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([to_see(address)])
        found = status_builders.node_status(self._container, self._find_queue(address))
        return cast("QueueStatus", found)

    async def connection(self, number: int) -> ConnectionStatus:
        """Return the status of the connection of this number.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([self._to_watch("connection")])
        return status_builders.connection_status(self._container, self._find_connection(number))

    async def link(self, identity: str) -> LinkStatus:
        """Return the status of the link of this identity.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([self._to_watch("link")])
        peer, link = status_builders.find_link(self._container, identity)
        return status_builders.link_status(peer, link)

    def _find(self, address: str, kind: str | None = None) -> Node:
        node = self._container.nodes.get(address)
        if node is None or kind not in (None, status_builders.kind_of(node)):
            raise ManagementError("not-found", f"no {(kind or 'node')[:64]} {shown(address)}")
        return node

    def _find_queue(self, address: str) -> Queue:
        node = self._container.nodes.get(address)
        if not isinstance(node, Queue):
            raise ManagementError("not-found", f"no queue {shown(address)}")
        return node

    def _find_exchange(self, name: str) -> tuple[Topology, Exchange]:
        broker = self._container.broker
        exchange = None if broker is None else broker.exchanges.get(name)
        if broker is None or exchange is None:
            raise ManagementError("not-found", f"no exchange {shown(name)}")
        return broker, exchange

    def _find_connection(self, number: int) -> ConnectedPeer:
        for peer in self._container.connected:
            if peer.number == number:
                return peer
        raise ManagementError("not-found", f"no connection {str(number)!r}")

    # -- queues and topics ------------------------------------------------------------------

    async def create_queue(self, address: str, **rules: Any) -> QueueStatus:
        """Create a queue, which exists again after a restart if there is a store.

        Args:
            address: its address.
            rules: as for ``Container.add_queue``.

        Raises:
            ManagementError: ``"forbidden"``, also for a reserved address; ``"exists"``; ``"invalid"``; ``"store-failed"``.

        Cancelled: it may exist or not.
        """
        made = await self._create("queue", address, rules, self._container.add_queue)
        return cast("QueueStatus", made)

    async def create_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Create a topic, which exists again after a restart if there is a store.

        Args:
            address: its address.
            limits: as for ``Container.add_topic``.

        Raises:
            ManagementError: as for ``create_queue``.

        Cancelled: it may exist or not.
        """
        made = await self._create("topic", address, limits, self._container.add_topic)
        return cast("TopicStatus", made)

    async def _create(
        self, kind: str, address: str, rules: dict[str, Any], add: Callable[..., Node]
    ) -> NodeStatus:
        container = self._container
        await self._permissions.check(_to_make(address, rules))
        if address.startswith(RESERVED):
            raise ManagementError("forbidden", f"{shown(address)} is reserved: choose another name")
        if address in container.nodes:
            raise ManagementError(
                "exists",
                f"{label(container.nodes[address])} exists already: change its rules, or delete it first",
            )
        try:
            node = add(address, **rules)
        except (LocalProtocolError, TypeError) as fault:
            raise ManagementError("invalid", str(fault)) from fault
        try:
            await self._keep(address, NodeSetting(kind, rules))
        except StoreError as fault:
            if container.nodes.get(address) is node:
                container.remove_node(address)
            raise ManagementError("store-failed", f"cannot store the {kind}: {fault}") from fault
        return status_builders.node_status(container, node)

    async def _keep(self, address: str, setting: NodeSetting) -> None:
        if self._container.settings is not None:
            await self._container.settings.keep(address, setting)

    async def set_queue(self, address: str, *, kind: str | None = None, **rules: Any) -> QueueStatus:
        """Change some rules of a queue; its messages stay.

        The new rules are kept after a restart if the queue was created by management. A queue of the program, or a declared one,
        gets its own rules again.

        Args:
            address: its address.
            kind: the kind that it must have; None for any.
            rules: those that change, as for ``Container.add_queue``; ``durable``, ``exclusive``, ``single_active`` and
                ``grouped`` cannot change.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``; ``"store-failed"``.

        Cancelled: the rules may be changed or not.
        """
        await self._permissions.check(_to_make(address, rules))
        queue = self._find(address, kind)
        if not isinstance(queue, Queue):
            raise ManagementError(
                "invalid", f"{label(queue)} is not a queue: use set_topic, or type=topic, for a topic"
            )
        wishes = dict(rules)
        if wishes.pop("durable", queue.durable) != queue.durable:
            raise ManagementError(
                "invalid",
                f"durable of {label(queue)} cannot be changed: delete the queue and create it again",
            )
        before = queue.policy
        try:
            queue.update(replace(before, **wishes))
        except (LocalProtocolError, TypeError) as fault:
            raise ManagementError("invalid", str(fault)) from fault
        await self._keep_changes(queue, wishes, lambda: queue.update(before))
        return cast("QueueStatus", status_builders.node_status(self._container, queue))

    async def set_topic(self, address: str, **limits: Any) -> TopicStatus:
        """Change some limits of a topic; its subscriptions and their messages stay.

        The new limits are kept after a restart if the topic was created by management. A topic of the program gets its own limits
        again.

        Args:
            address: its address.
            limits: those that change, as for ``Container.add_topic``.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``; ``"store-failed"``.

        Cancelled: the limits may be changed or not.
        """
        await self._permissions.check(_to_make(address, limits))
        topic = cast("Topic", self._find(address, "topic"))
        before: dict[str, Any] = {name: getattr(topic, name) for name in _LIMITS}
        try:
            topic.update(**before | limits)
        except (LocalProtocolError, TypeError) as fault:
            raise ManagementError("invalid", str(fault)) from fault
        await self._keep_changes(topic, limits, lambda: topic.update(**before))
        return cast("TopicStatus", status_builders.node_status(self._container, topic))

    async def _keep_changes(self, node: Node, changes: dict[str, Any], undo: Callable[[], object]) -> None:
        """Store the changed rules of a node that management created, or undo them."""
        settings = self._container.settings
        made = None if settings is None else settings.get(node.address)
        if made is not None:
            try:
                await self._keep(node.address, NodeSetting(made.kind, made.rules | changes))
            except StoreError as fault:
                undo()
                raise ManagementError(
                    "store-failed",
                    f"cannot store the new rules, so {label(node)} keeps the old rules: {fault}",
                ) from fault

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

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"precondition"``; ``"invalid"``: the node is part of the program;
                ``"store-failed"``: it is deleted, but may exist again after a restart.

        Cancelled: it is deleted anyway.
        """
        await self._permissions.check(or_manage([(("delete", address),)]))
        node = self._find(address, kind)
        if not isinstance(node, (Queue, Topic)):
            raise ManagementError("invalid", f"{label(node)} is part of the service, and cannot be deleted")
        _check_deletion(node, if_empty=if_empty, if_unused=if_unused)
        self._container.redirects.drop(address)
        ready = await take_in_turns(self._delete_in_steps(node, if_empty=if_empty, if_unused=if_unused))
        await self._deleted()
        return ready

    def _delete_in_steps(
        self, node: Queue | Topic, *, if_empty: bool, if_unused: bool
    ) -> Generator[Resumer | None, None, int]:
        # Again, because it is another turn. With ``if_empty`` no message may come between two steps.
        ready = _check_deletion(node, if_empty=if_empty, if_unused=if_unused)
        broker = self._container.broker
        if isinstance(node, BrokerQueue) and broker is not None:
            return (yield from broker.delete_queue_in_steps(node.name, if_empty=if_empty))
        if isinstance(node, Queue) and len(node) > _AT_ONCE and not if_empty:
            yield from node.purge_in_steps()
        if self._container.nodes.get(node.address) is node:
            self._container.remove_node(node.address)
        return ready

    async def _deleted(self) -> None:
        """Wait until all rows that were deleted before are not in the store any more."""
        journal = self._container.journal
        if journal is None:
            return
        try:
            await until_done(journal.when_dropped)
        except StoreError as failure:
            raise ManagementError(
                "store-failed",
                f"the store cannot delete the messages, which may be there again after a restart: {failure}",
            ) from failure

    async def purge(self, address: str) -> int:
        """Remove the ready and the delayed messages of a queue; return their number.

        Messages that arrive meanwhile stay, and those that a consumer has.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"store-failed"``: they are removed, but may be there again after a
                restart.

        Cancelled: they are removed anyway.
        """
        await self._permissions.check(or_manage([(("receive", address),)]))
        queue = self._find_queue(address)
        queue.sweep_now()
        count = await take_in_turns(queue.purge_in_steps())
        await self._deleted()
        return count

    # -- handing over -----------------------------------------------------------------------

    async def hold(self, address: str, seconds: float) -> None:
        """Let a queue take and give no messages for some time.

        Senders wait, as at a full queue. What AMQP 0-9-1 publishes through an exchange is still taken, because it cannot wait.
        ``move`` and ``browse`` go on. Call it again before the time is over to prolong it.

        Args:
            address: its address.
            seconds: how long, at most 600; 0 ends it now.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``.

        Cancelled: it may be held or not.
        """
        await self._permissions.check([(("manage", address),)])
        queue = self._find_queue(address)
        if not 0 <= seconds <= _LONGEST_HOLD:
            raise ManagementError("invalid", f"seconds={seconds}: expected 0 to {_LONGEST_HOLD}")
        queue.hold(seconds)

    async def redirect(self, address: str, url: str | None) -> None:
        """Send all links of a queue to another place, and new ones too (2.8.18).

        Peers of AMQP 1.0 get ``amqp:link:redirect``; those of other protocols a refusal that names the place. Messages that consumers had
        come back; ``move`` and ``browse`` go on. A queue that is made again at this address is redirected too: with a store also after
        a restart, until the redirect is ended here or the queue is deleted by ``delete``.

        Args:
            address: its address.
            url: the URL of the other place, with a host, a port and an address; None to accept links again.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``; ``"store-failed"``: nothing has changed.

        Cancelled: links are redirected anyway, unless the store fails.
        """
        await self._permissions.check([(("manage", address),)])
        if url is None:
            if self._container.redirects.get(address) is None:
                self._find_queue(address)
            await self._keep_redirect(address, None, None)
        else:
            self._find_queue(address)
            await self._keep_redirect(address, *place_of(address, url))

    async def _keep_redirect(self, address: str, url: str | None, refusal: RefusedError | None) -> None:
        """Store a redirect, and apply it to the queue that then has the address."""
        container = self._container

        def begin(told: Done) -> None:
            def done(failure: StoreError | None) -> None:
                queue = container.nodes.get(address)
                if failure is None and isinstance(queue, Queue):
                    queue.redirect(refusal)
                told(failure)

            container.redirects.set(address, url, done)

        try:
            await until_done(begin)
        except StoreError as fault:
            raise ManagementError("store-failed", f"cannot store the redirect: {fault}") from fault

    # -- messages ---------------------------------------------------------------------------

    async def publish(self, address: str, message: Message | Any) -> bool:
        """Send a message to a node, and wait until the node accepts it.

        Args:
            address: the address of the node, ``/exchanges/NAME/KEY`` for an exchange and a routing key; looked up as for a
                link, but no queue is created.
            message: bytes, str, any AMQP value, or a ``Message``.

        Returns:
            Whether a node has it: False if an exchange leads to no queue.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``: it cannot be encoded; ``"refused"``.

        Cancelled: the node may have the message or not.
        """
        made = message if isinstance(message, Message) else Message(message)
        try:
            content = content_of_message(made)
        except LocalProtocolError as fault:
            raise ManagementError("invalid", str(fault)) from fault
        return await self.publish_content(address, content)

    async def publish_content(self, address: str, content: Content) -> bool:
        """Send a message in the form of any protocol; see ``publish``."""
        address = self._container.resolve(address)
        await self._permissions.check(or_manage([(("send", address),)]))
        try:
            return await single_messages.post(self._container, self._target(address), content)
        except RefusedError as refusal:
            raise ManagementError("refused", refusal.description) from refusal

    def _target(self, address: str) -> Node:
        """Return the node that takes messages for this address, which exists."""
        broker = self._container.broker
        node = self._container.nodes.get(address)
        if node is None and broker is not None:
            node = broker.find_route(address)
        if node is None:
            raise ManagementError("not-found", f"no node {shown(address)}")
        return node

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

        Args:
            address: the address of the queue.
            count: messages at most.
            offset: messages to skip before.
            octets: of these messages together at most; a larger message is returned alone. None for any number.
            filter: a selector of JMS that they must match; None for all.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check(or_manage([(("receive", address),)]))
        wants = single_messages.wanted(filter)
        queue = self._find_queue(address)
        queue.sweep_now()
        room = inf if octets is None else _checked(octets)
        return await single_messages.browse(queue, _checked(count), _checked(offset), wants, room)

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

        Args:
            address: the address of the queue.
            count: messages at most.
            outcome: ``"accept"``: they are gone; ``"release"``: they return to their places; ``"reject"``: they die, and go
                to the dead-letter address if there is one.
            octets: take no further message once these together have so many; None for any number.
            filter: a selector of JMS that they must match; None for all.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``.

        Cancelled: some may have been taken.
        """
        await self._permissions.check(or_manage([(("receive", address),)]))
        wants = single_messages.wanted(filter)
        queue = self._find_queue(address)
        queue.sweep_now()
        room = inf if octets is None else _checked(octets)
        return await single_messages.get(self._container, queue, _checked(count), outcome, wants, room)

    async def move(
        self,
        source: str,
        target: str,
        count: int | None = None,
        *,
        filter: str | None = None,  # noqa: A002
    ) -> int:
        """Move ready messages of a queue elsewhere, each exactly once; return the number.

        A few messages at a time are moved together. With a store, each such step is one commit: also if the process is killed, every
        message is at exactly one of the two. The messages keep their order, and get a new time of arrival.

        Args:
            source: the address of the queue.
            target: the address of the node, ``/exchanges/NAME/KEY`` for an exchange; it must exist.
            count: messages at most; None for as many as are ready at the beginning.
            filter: a selector of JMS that they must match; None for all.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``; ``"refused"``: the target does not take one, e.g. because
                it is full. Messages that were moved before stay there.

        Cancelled: every message is at exactly one of the two.
        """
        target = self._container.resolve(target)
        await self._permissions.check(or_manage([(("receive", source),), (("send", target),)]))
        wants = single_messages.wanted(filter)
        queue, node = self._find_queue(source), self._target(target)
        if node is queue:
            raise ManagementError(
                "invalid", f"{shown(source)} is both source and target: choose another target"
            )
        queue.sweep_now()

        def route(_content: Content) -> Node | None:
            return node if self._container.nodes.get(target, node) is node else None

        most = queue.available if count is None else _checked(count)
        return await Transfer(self._container, queue, route, wants).run(most)

    async def redrive(
        self, address: str, count: int | None = None, *, died_in: str | None = None
    ) -> Redriven:
        """Send dead letters back to the queues where they died, each exactly once.

        The last death in the history of each message names its queue: ``x-death``, ``x-opt-deaths``, or
        ``x-opt-deadletter-source``. The history stays in the message, as RabbitMQ's shovel leaves it: if it dies again, the count
        grows. The queue itself counts its attempts from 0. A message without a history, or whose queue does not exist any more,
        stays.

        Args:
            address: the address of the queue with the dead letters.
            count: messages at most; None for as many as are ready at the beginning.
            died_in: the queue whose dead letters go back, by name or address; None for all.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``, also for ``died_in``; ``"refused"``: a queue does not take one, e.g. because it is full. Messages
                that were moved before stay there.

        Cancelled: every message is at exactly one of the queues.
        """
        await self._permissions.check(or_manage([(("receive", address),)]))
        queue = self._find_queue(address)
        queue.sweep_now()
        most = queue.available if count is None else _checked(count)
        origins = Origins(self._container, queue)
        if died_in is not None:
            only = origins.find(died_in)
            there = died_in if only is None else only.address
            await self._permissions.check(or_manage([(("send", there),)]))
            if only is None:
                raise ManagementError(
                    "not-found", f"no queue {shown(died_in)}, to which dead letters could go back"
                )
            origins.keep_to(only)
        elif self._permissions.limited:
            for each in await origins.find_all():
                await self._permissions.check(or_manage([(("send", each),)]))
            origins.close()
        transfer = Transfer(self._container, queue, origins.route)
        await transfer.run(most)
        return Redriven(moved=dict(transfer.moved), left=queue.available)

    # -- exchanges and bindings -------------------------------------------------------------

    async def _broker_for(self, address: str) -> Topology:
        """Return the broker, which is added for one who may create this address."""
        if self._container.broker is None:
            await self._permissions.check(or_manage([(("create", address),)]))
        return self._container.broker or self._container.add_broker()

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

        Raises:
            ManagementError: ``"forbidden"``; ``"exists"``: with other properties; ``"invalid"``; ``"store-failed"``.

        Cancelled: it may exist or not.
        """
        broker = await self._broker_for(name)
        needs = broker_rights.to_declare_queue(broker, name, arguments or {}, exclusive=False)
        await self._permissions.check(or_manage(needs))
        with _faults_of_broker():
            queue, _ = broker.declare_queue(name, arguments, durable=durable, auto_delete=auto_delete)
        await self._stored()
        return cast("QueueStatus", status_builders.node_status(self._container, queue))

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

        Raises:
            ManagementError: ``"forbidden"``; ``"exists"``: with other properties; ``"invalid"``; ``"store-failed"``.

        Cancelled: it may exist or not.
        """
        broker = await self._broker_for(exchange_address(name))
        await self._permissions.check(
            or_manage(broker_rights.to_declare_exchange(broker, name, arguments or {}))
        )
        with _faults_of_broker():
            exchange, _ = broker.declare_exchange(
                name, type, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
            )
        await self._stored()
        return cast("ExchangeStatus", status_builders.node_status(self._container, exchange))

    async def exchange(self, name: str) -> ExchangeStatus:
        """Return the status of the exchange of this name; empty for the default one.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([to_see(exchange_address(name))])
        _, exchange = self._find_exchange(name)
        return cast("ExchangeStatus", status_builders.node_status(self._container, exchange))

    async def route(
        self, exchange: str, key: str, headers: Mapping[str, Any] | None = None
    ) -> list[QueueStatus]:
        """Return the queues that a message would reach, without a message.

        Queues that the reader may not see are left out.

        Args:
            exchange: the name of the exchange; empty for the default one.
            key: the routing key of the message.
            headers: its headers; only exchanges of type headers read them.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check([to_see(exchange_address(exchange))])
        broker, found = self._find_exchange(exchange)
        given = dict(headers or {})
        queues = await take_paced(broker.route_in_steps(found, [key], lambda: given))
        return [
            cast("QueueStatus", status_builders.node_status(self._container, queue))
            for queue in queues
            if await self._permissions.may_see(queue.address)
        ]

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange with its bindings.

        Args:
            name: its name.
            if_unused: delete it only if it is the source of no binding.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"precondition"``.

        Cancelled: it is deleted anyway.
        """
        await self._permissions.check(or_manage([(("delete", exchange_address(name)),)]))
        broker, _ = self._find_exchange(name)
        with _faults_of_broker("precondition"):
            await take_in_turns(broker.delete_exchange_in_steps(name, if_unused=if_unused))

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

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``: one of them; ``"invalid"``; ``"store-failed"``.

        Cancelled: the binding may exist or not.
        """
        broker = await self._broker_for(exchange_address(source))
        await self._permissions.check(
            or_manage(
                [
                    *broker_rights.to_bind(broker, source, destination_kind, destination, key),
                    *broker_rights.to_bind_any_key(broker, source),
                ]
            )
        )
        with _faults_of_broker():
            binding = broker.bind(source, destination_kind, destination, key, arguments)
        await self._stored()
        return status_builders.binding_status(self._container.name, binding)

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

        Raises:
            ManagementError: ``"forbidden"``; ``"store-failed"``.

        Cancelled: the binding may be removed or not.
        """
        broker = await self._broker_for(exchange_address(source))
        await self._permissions.check(
            or_manage(broker_rights.to_bind(broker, source, destination_kind, destination, key))
        )
        with _faults_of_broker():
            broker.unbind(source, destination_kind, destination, key, arguments)
        await self._stored()

    async def _stored(self) -> None:
        """Wait until all previous definitions of the broker are safe."""
        if self._container.broker is None:
            return
        try:
            await until_done(self._container.broker.when_stored)
        except StoreError as failure:
            raise ManagementError("store-failed", f"cannot store the definition: {failure}") from failure

    # -- definitions ------------------------------------------------------------------------

    async def export_definitions(self) -> dict[str, Any]:
        """Return all queues, topics, exchanges and bindings, as values of JSON.

        They are those that the one who asks may see. Exclusive and temporary queues are not among them.

        Cancelled: nothing has changed.
        """
        return await definitions.export_definitions(self)

    async def import_definitions(
        self, given: Mapping[str, Any], *, virtual_host: str | None = None
    ) -> Imported:
        """Make the queues, topics, exchanges and bindings of an export.

        Each is made as by ``create_queue`` and the like, with the permission for that. A queue that exists gets the rules of the
        export. A definition that cannot be made is left out, and the others are made.

        Args:
            given: what ``export_definitions`` returned; or the definitions of RabbitMQ, as parsed JSON.
            virtual_host: the virtual host of RabbitMQ whose definitions are imported; None for the only one, or ``"/"``.

        Returns:
            What was made, and what was left out, with the reason.

        Raises:
            ManagementError: ``"invalid"``: these are no definitions; nothing is made.

        Cancelled: some of it may be made; import it again.
        """
        return await definitions.import_definitions(self, given, virtual_host)

    # -- connections and links --------------------------------------------------------------

    async def close_connection(self, number: int, reason: str = _CLOSED) -> None:
        """Close a connection with ``amqp:connection:forced``, or the like in its protocol.

        Does not wait for the peer.

        Args:
            number: of the connection; see ``ConnectionStatus``.
            reason: the description of the error that the peer gets.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check(self._to_end("connection"))
        self._find_connection(number).close(Condition.CONNECTION_FORCED.value, reason)

    async def close_link(self, identity: str, reason: str = _CLOSED) -> None:
        """End a link with ``amqp:link:detach-forced``, or the like in its protocol.

        A consumer of AMQP 0-9-1 is cancelled; of an address that it publishes to, messages that wait are refused.

        Args:
            identity: of the link; see ``LinkStatus``.
            reason: the description of the error that the peer gets.

        Raises:
            ManagementError: ``"forbidden"``, or ``"not-found"``.

        Cancelled: nothing has changed.
        """
        await self._permissions.check(self._to_end("link"))
        _, link = status_builders.find_link(self._container, identity)
        link.close(Condition.DETACH_FORCED.value, reason)

    async def watch_frames(self, number: int, *, payload: int = 0) -> FrameWatch:
        """Begin to show the frames that come and go on a connection, from now on.

        They are those of its protocol, after TLS and WebSocket. Secrets of a login are never shown. In a container that takes tokens
        (``add_cbs``) no payload is shown, because it may be a token.

        Args:
            number: of the connection; see ``ConnectionStatus``.
            payload: octets of the contents of messages to show of each frame, at most 200. Properties and headers are contents in AMQP
                1.0. In the other protocols they are fields of frames, and are always shown.

        Returns:
            The watch, which is a context manager. It keeps at most 1,000 frames, and ends by itself if its ``frames`` was not called for
            ten seconds.

        Raises:
            ManagementError: ``"forbidden"``; ``"not-found"``; ``"invalid"``; ``"too-many"``: there are four watches.

        Cancelled: nothing has changed.
        """
        check = partial(self._permissions.check, [(("manage", f"{self._place}/connection"),)])
        await check()
        peer, container = self._find_connection(number), self._container
        if not 0 <= payload <= MOST_PAYLOAD:
            raise ManagementError("invalid", f"payload={payload}: expected 0 to {MOST_PAYLOAD}")
        watches = container.frame_watches
        if len(watches) >= MOST_WATCHES:
            raise ManagementError(
                "too-many",
                f"the frames of {len(watches)} connections are watched already: end one of these watches",
            )
        shown = 0 if TOKENS in container.nodes else payload
        protocol = status_builders.protocol_of(peer, peer.statistics())
        watch = FrameWatch(peer.pump, protocol, shown, check, container.clock.wall, watches.remove)
        watches.append(watch)
        return watch

    def _to_end(self, kind: str) -> list[Need]:
        return or_manage([(("delete", f"{self._place}/{kind}"),)])

    def __repr__(self) -> str:
        return f"<Management of {self._container!r}>"


class _OnBehalf(Management):
    """Management on behalf of another: its changes are logged."""

    __slots__ = ("asker",)

    def __init__(
        self, container: ManagedContainer, permissions: Permissions, place: str, asker: Asker
    ) -> None:
        super().__init__(container, permissions, place)
        self.asker: Final = asker


for _name in CHANGES:
    setattr(_OnBehalf, _name, logged(_name, getattr(Management, _name)))


def _no_queue(_address: str) -> bool:
    return False


def _checked(number: int) -> int:
    if number < 0:
        raise ManagementError("invalid", f"{number}: expected a number of at least 0")
    return number


_TO_WATCH: Final[tuple[Action, ...]] = ("receive", "monitor", "manage")


def _check_deletion(node: Queue | Topic, *, if_empty: bool, if_unused: bool) -> int:
    """Return how many messages are ready.

    Raises:
        ManagementError: there are messages or receivers, and the deletion was asked for only without them.
    """
    ready = 0
    if isinstance(node, Queue):
        node.sweep_now()
        ready = node.available
    if if_unused and node.outlets:
        raise ManagementError(
            "precondition", f"{shown(node.address)} has {len(node.outlets)} receivers: it is in use"
        )
    if if_empty and ready:
        raise ManagementError("precondition", f"{shown(node.address)} has {ready} messages: it is not empty")
    return ready


def _to_make(address: str, rules: Mapping[str, Any]) -> list[Need]:
    """Return the needs for creating a queue or a topic, or changing its rules."""
    needs: list[Need] = [(("create", address),)]
    if isinstance(letters := rules.get("dead_letter"), str):
        needs.append((("receive", address),))
        needs.append((("send", letters),))
    return or_manage(needs)


@contextmanager
def _faults_of_broker(precondition: Literal["invalid", "precondition"] = "invalid") -> Generator[None]:
    """Turn the errors of a broker into those of management."""
    try:
        yield
    except AccessRefusedError as fault:
        raise ManagementError("forbidden", fault.description) from fault
    except NotFoundError as fault:
        raise ManagementError("not-found", fault.description) from fault
    except InequivalentError as fault:
        raise ManagementError("exists", fault.description) from fault
    except PreconditionError as fault:
        raise ManagementError(precondition, fault.description) from fault
    except (BrokerError, RefusedError) as fault:
        raise ManagementError("invalid", fault.description) from fault
    except LocalProtocolError as fault:
        raise ManagementError("invalid", str(fault)) from fault
