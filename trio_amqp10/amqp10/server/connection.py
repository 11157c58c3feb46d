"""One connection of AMQP 1.0: admits the links that the peer opens.

Knows links and nodes; ``inlets`` and ``outlets`` know how messages pass between them, and
``container.container`` which nodes there are.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.amqp10.filters import FilterError, FilterSet, capabilities, parse_filters
from trio_amqp10.amqp10.peer.incoming_links import IncomingLink, IncomingReceiver, IncomingSender
from trio_amqp10.amqp10.peer.link_options import LinkOptions
from trio_amqp10.amqp10.peer.terminus_store import NOTHING_KEPT, Retention
from trio_amqp10.amqp10.spec.messaging import DistributionMode, Source, Target
from trio_amqp10.amqp10.spec.transactions import Coordinator as CoordinatorTarget
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode, Role, SenderSettleMode
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.broker.nodes.node import Node, RefusedError, SubscriptionTerms
from trio_amqp10.broker.peer_interfaces import ChannelView, LinkView, ServingContainer
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .coordinator import CAPABILITIES, CONTROL_CREDIT, ControlInlet, Coordinator
from .inlets import ReceiverInlet
from .lifetimes import actual_properties, kept_by, temporary_address
from .native_message import arriving
from .outlets import SenderOutlet
from .relay_inlet import RelayInlet, wanted
from .retained_terminus import Key
from .selection import wanted_by
from .sole_connection_terms import sole_policy_of
from .subscription_terms import expiry_fields, owner_and_name, subscription_terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.session import Session
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Owner
    from trio_amqp10.broker.nodes.queue import Queue
    from trio_amqp10.broker.rights.guard import Wish
    from trio_amqp10.broker.rights.rights_holder import SolePolicy
    from trio_amqp10.net.pump import Pump

    from .link_end_base import LinkEnd
    from .protocol import Amqp10
    from .retained_termini import Termini
    from .retained_terminus import RetainedTerminus

_log = logging.getLogger("trio_amqp10.container")

_PAIRED: Final = Symbol("paired")
INLET_CREDIT: Final = 1000
"""The credit of a link to a node that takes messages at once."""
_FEW: Final = 64
"""Termini that a connection claims before it first forgets the expired ones."""
WORKED_CREDIT: Final = 100
"""The credit of a link to a node with a handler, which takes messages one by one."""


class Amqp10Container(ServingContainer, Protocol):
    """The container, as AMQP 1.0 sees it. See ``Container``."""

    @property
    def amqp10(self) -> Amqp10:
        """Serves peers that speak AMQP 1.0."""
        ...

    @property
    def termini(self) -> Termini:
        """The state of links that may be resumed."""
        ...

    @property
    def relay(self) -> Node:
        """The node of the anonymous terminus."""
        ...

    @property
    def retaining_nodes(self) -> Mapping[str, Node]:
        """The nodes that keep a subscription while it has no link."""
        ...

    @property
    def transaction_timeout(self) -> float | None:
        """Seconds that a transaction may take; None for any time."""
        ...

    def make_temporary(self, address: str, kept_by: frozenset[str]) -> Queue:
        """Create a queue that a peer asked for; see ``Container.make_temporary``."""
        ...


class Amqp10Connection(ConnectedPeerBase):
    """One connected peer, until its connection is over and no task works for it.

    Attributes:
        connection: the connection to the peer.
        coordinator: the coordinator of its transactions.
        withheld: links that get no credit until their peer settles deliveries that have their outcome.
    """

    def __init__(self, container: Amqp10Container, connection: Connection) -> None:
        super().__init__(container)
        self.connection = connection
        self.pump: Pump = connection.pump
        connection.derive_deliveries(arriving)
        self.coordinator: Final = Coordinator(
            self,
            timeout=container.transaction_timeout,
        )
        self.withheld: dict[ReceiverInlet, None] = {}
        self._amqp10 = container.amqp10
        self._termini = container.termini
        self._relay = container.relay
        self._retaining_nodes = container.retaining_nodes
        self._make_temporary = container.make_temporary
        self._made: dict[object, Any] = {}
        self._claimed: dict[RetainedTerminus, ReceiverInlet | SenderOutlet] = {}
        self._most_claimed = _FEW

    # -- who is connected -------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """The container-id in the peer's open."""
        return self.connection.remote.container_id

    def write_outcomes(self) -> None:
        """Write the collected dispositions; see ``ConnectedPeerBase``."""
        self.connection.engine.context.flush()

    @property
    def identity(self) -> Any:
        """The identity that the peer proved, or None."""
        return self.connection.identity

    @property
    def host(self) -> str | None:
        """The IP address that the peer dialled from; None in memory or on a Unix socket."""
        return self.connection.host

    @property
    def sole(self) -> SolePolicy | None:
        """The policy for other connections of the peer's container.

        See "AMQP Enforcing Connection Uniqueness 1.0".
        """
        return sole_policy_of(self.connection.remote)

    @property
    def closed(self) -> bool:
        """Whether the connection is over, closed by either peer."""
        return self.connection.closed

    @property
    def link_count(self) -> int:
        """The number of links that are attached, or being attached or detached."""
        return len(self.connection.links)

    def links(self) -> Iterator[LinkView]:
        """Yield the links of this moment."""
        for link in self.connection.links:
            role = "sender" if link.role is Role.SENDER else "receiver"
            end = cast("LinkEnd[Any]", link)  # All links of the container are its inlets and outlets.
            yield LinkView(role, end.name, end.statistics, end.close)

    def channel_views(self) -> Iterator[ChannelView]:
        """Yield the sessions of this moment."""
        for session in self.connection.sessions:
            yield ChannelView(session.engine.channel, session.statistics)

    def statistics(self) -> Mapping[str, Any]:
        """See ``Connection.statistics``."""
        return self.connection.statistics()

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection with this error (2.4.3), without waiting for the peer."""
        self.connection.close_now(Error(condition=condition, description=description, info=info))

    # -- deliveries that the peer must settle -----------------------------------------------

    def remembers_too_much(self, inlet: ReceiverInlet) -> bool:
        """Whether the peer must settle deliveries before it may send more (2.6.12).

        These deliveries have their outcome. If it must, ``inlet`` is woken later.
        """
        limit = self._container.max_unsettled_octets
        if limit is None or self.connection.engine.awaiting_settlement_octets < limit:
            return False
        self.withheld[inlet] = None
        return True

    def look_again(self) -> None:
        """Wake the withheld links, if the peer has settled enough."""
        limit = self._container.max_unsettled_octets
        if limit is None or self.connection.engine.awaiting_settlement_octets < limit:
            withheld, self.withheld = self.withheld, {}
            if self.open:
                self.start_soon(self._wake, withheld)

    # -- links ------------------------------------------------------------------------------

    def admit(self, link: IncomingLink) -> None:
        """Accept the link to its node, or refuse it, once the peer's permission is known."""
        recovered = self._recall(link)
        self.guard.ask(wanted(link, recovered), partial(self._admit, link, recovered))

    def _recall(self, link: IncomingLink) -> Source | Target | None:
        """Return the terminus kept for a link whose attach names none (2.6.3), or None.

        The attach lacks the terminus of the container. Return None for any other link.
        """
        named = link.remote.target if isinstance(link, IncomingReceiver) else link.remote.source
        retained = None if named is not None else self._termini.recall(self._key(link))
        return None if retained is None else retained.end

    def _admit(
        self, link: IncomingLink, recovered: Source | Target | None, refused: RefusedError | None
    ) -> None:
        with self._admitting(link):
            if refused is not None:
                raise refused
            self.check_link()
            if isinstance(link, IncomingReceiver):
                self._admit_inlet(link, link.remote.target if recovered is None else recovered)
            elif isinstance(link, IncomingSender):
                self.admit_outlet(link, link.remote.source if recovered is None else recovered)

    @contextmanager
    def _admitting(self, link: IncomingLink) -> Generator[None]:
        """Refuse the link if the body raises."""
        try:
            yield
        except RefusedError as refusal:
            _log.debug("%r refuses %r: %s", self._container, link, refusal)
            link.refuse_now(_error_of(refusal))
        except LocalProtocolError as gone:
            _log.debug("%r: %s", link, gone)
        except Exception:
            _log.exception("%r could not be admitted", link)
            link.refuse_now(Condition.INTERNAL_ERROR.value, "the service failed")

    def _admit_inlet(self, link: IncomingReceiver, asked: Any) -> None:
        engine, session = _ends(link)
        if asked is None:
            raise RefusedError(
                Condition.INVALID_FIELD,
                f"the attach has no target, and no target is kept for a link {link.name!r}",
            )
        if isinstance(asked, CoordinatorTarget):
            self._admit_control(link)
            return
        if not isinstance(asked, Target):
            raise RefusedError(
                Condition.NOT_IMPLEMENTED,
                f"a target of type {type(asked).__name__.lower()} is not supported",
            )
        made = link.remote.target is not None and _is_to_be_made(asked)
        if made:
            address = temporary_address(self.container_id, link.name)
            node: Node = self._make_temporary(address, kept_by(asked.dynamic_node_properties))
        elif asked.address is None:
            node = self._relay
        else:
            node = self._container.find(_checked(asked.address))
        with self._entering(node):
            self._steal(link)
            self.check_inlet(node)
            agreed = self._retention(link, asked, storable=not made)
            credit = INLET_CREDIT if node.accepts_receivers else WORKED_CREDIT
            target = Target(
                address=self._address_for(asked, node),
                durable=agreed.durable,
                expiry_policy=agreed.expiry_policy,
                timeout=agreed.timeout,
                dynamic=asked.dynamic,
                dynamic_node_properties=_actual(asked),
                capabilities=_shared(asked.capabilities, node),
            )
            options = _options(link, source=link.remote.source, target=target)
            if (paired := _paired(link, node)) is not None:
                options = replace(options, properties=paired)
            if self._amqp10.settles_first:
                options = replace(options, rcv_settle_mode=ReceiverSettleMode.FIRST)
            kind = RelayInlet if node is self._relay and self.guard.asks else ReceiverInlet
            inlet = kind(session, engine, credit, node, self)
            self._claim(link, inlet, agreed, target)
            inlet.attach(link, options)
            self._began(link, inlet, node, made, asked)

    def _admit_control(self, link: IncomingReceiver) -> None:
        """Accept a control link: every peer has a coordinator of its own (4.1)."""
        engine, session = _ends(link)
        options = _options(
            link, source=link.remote.source, target=CoordinatorTarget(capabilities=CAPABILITIES)
        )
        self._steal(link)
        inlet = ControlInlet(session, engine, CONTROL_CREDIT, self.coordinator, self)
        inlet.attach(link, options)
        self._termini.attach(self._key(link), inlet)
        self.guard.remember(inlet, wanted(link))
        inlet.begin()

    # -- for emulators of other services, which override ``admit_outlet`` -------------------

    def admit_outlet(self, link: IncomingSender, asked: Any) -> None:
        """Accept a receiving link of the peer, or raise ``RefusedError``.

        ``asked`` is its source. An override may answer later, if it checks then that the link ``is_waiting``.
        """
        _ends(link)
        if asked is None:
            self._admit_subscriber(link)
            return
        if not isinstance(asked, Source):
            raise RefusedError(
                Condition.NOT_IMPLEMENTED,
                f"a source of type {type(asked).__name__.lower()} is not supported",
            )
        if asked.distribution_mode not in (None, DistributionMode.MOVE, DistributionMode.COPY):
            raise RefusedError(
                Condition.NOT_IMPLEMENTED,
                f"distribution-mode {asked.distribution_mode!r}: expected move or copy",
            )
        copying = asked.distribution_mode == DistributionMode.COPY
        made = link.remote.source is not None and _is_to_be_made(asked)
        if made:
            address = temporary_address(self.container_id, link.name)
            node: Node = self._make_temporary(address, kept_by(asked.dynamic_node_properties))
        elif asked.address is None:
            raise RefusedError(
                Condition.INVALID_FIELD, "the source has no address: expected one, or dynamic=true (3.5.3)"
            )
        else:
            node = self._container.find(_checked(asked.address))
        with self._entering(node):
            filters = _filters(asked, node)
            subscription_terms = subscription_terms_of(
                self.owner, link.name, asked, filters, link.remote.properties
            )
            target = getattr(link.remote.target, "address", None)
            self._steal(link)
            self.check_outlet(node, copying=copying, target=target, subscription_terms=subscription_terms)
            storable = _is_storable(node) and not made
            agreed = NOTHING_KEPT if copying else self._retention(link, asked, storable=storable)
            source = Source(
                address=self._address_for(asked, node),
                **(expiry_fields(subscription_terms) if node.keeps_subscriptions else agreed._asdict()),
                dynamic=asked.dynamic,
                dynamic_node_properties=_actual(asked),
                distribution_mode=DistributionMode.COPY if copying else DistributionMode.MOVE,
                # Filters that are not in the answer are not applied (3.5.3).
                filter=filters.echo or None,
                default_outcome=asked.default_outcome,
                outcomes=asked.outcomes,
                capabilities=_shared(asked.capabilities, node),
            )
            wants = wanted_by(self.owner, filters)
            outlet = self._enter(
                link,
                node,
                source,
                subscription_terms,
                copying=copying,
                wants=wants,
                agreed=agreed,
                properties=_paired(link, node),
            )
            self._began(link, outlet, node, made, asked)

    def find_source(self, asked: Any) -> Node | None:
        """Return the node of a source; None if it must be created, or is no source.

        Raises:
            RefusedError: there is no such node.
        """
        if not isinstance(asked, Source) or not isinstance(asked.address, str) or asked.dynamic:
            return None
        return self._container.find(asked.address)

    def serve_outlet(
        self,
        link: IncomingSender,
        node: Node,
        source: Source,
        subscription_terms: SubscriptionTerms,
        *,
        copying: bool = False,
        properties: dict[Any, Any] | None = None,
        prepare: Callable[[SenderOutlet], object],
    ) -> None:
        """Accept a link from ``node`` with this source and properties in the answer.

        ``prepare`` is called with the outlet before the node gets it.
        """
        outlet = self._enter(link, node, source, subscription_terms, copying=copying, properties=properties)
        prepare(outlet)
        self._began(link, outlet, node, made=False)

    # -- subscriptions ----------------------------------------------------------------------

    def _admit_subscriber(self, link: IncomingSender) -> None:
        """Attach a link without a source to its subscription (2.6.3, 2.6.6).

        The peer knows only the name of the link, and wants to close the subscription that was kept.
        """
        owner, name = owner_and_name(self.owner, link.name, link.remote.desired_capabilities)
        keepers = [node for node in self._retaining_nodes.values() if _keeps(node, owner, name)]
        self._seek_subscription(link, owner, name, keepers)

    def _seek_subscription(
        self, link: IncomingSender, owner: Owner | None, name: str, keepers: list[Node]
    ) -> None:
        """Attach the link to the subscription at one of these nodes.

        The first from which the peer may receive is taken.
        """
        if not keepers:
            raise RefusedError(
                Condition.NOT_FOUND,
                f"the attach has no source, and no source is kept for a link {link.name!r}",
            )
        wish: Wish = "receive", keepers[0].address
        self.guard.ask(wish, partial(self._enter_subscriber, link, owner, name, keepers))

    def _enter_subscriber(
        self,
        link: IncomingSender,
        owner: Owner | None,
        name: str,
        keepers: list[Node],
        refused: RefusedError | None,
    ) -> None:
        with self._admitting(link):
            node, *others = keepers
            if refused is not None:
                if owner is not None:
                    raise refused
                # The subscription is no peer's own, so this peer must not learn that it exists.
                self._seek_subscription(link, owner, name, others)
                return
            subscription_terms = node.recall(owner, name)
            if subscription_terms is None:  # It expired while the permission was awaited.
                self._seek_subscription(link, owner, name, others)
                return
            source = Source(
                address=node.address,
                distribution_mode=DistributionMode.MOVE,
                **expiry_fields(subscription_terms),
            )
            self._steal(link)
            outlet = self._enter(link, node, source, subscription_terms)
            self._termini.attach(self._key(link), outlet)
            outlet.begin()

    def _enter(
        self,
        link: IncomingSender,
        node: Node,
        source: Source,
        subscription_terms: SubscriptionTerms,
        *,
        copying: bool = False,
        wants: Wants | None = None,
        agreed: Retention = NOTHING_KEPT,
        properties: dict[Any, Any] | None = None,
    ) -> SenderOutlet:
        """Accept a receiving link of the peer, with this source in the answer."""
        engine, session = _ends(link)
        options = _options(link, source=source, target=link.remote.target)
        if properties is not None:
            options = replace(options, properties=properties)
        outlet = self._amqp10.outlet_class(
            session, engine, node, self, copying=copying, subscription_terms=subscription_terms, wants=wants
        )
        self._claim(link, outlet, agreed, source)
        outlet.attach(link, options)
        return outlet

    @contextmanager
    def _entering(self, node: Node) -> Generator[None]:
        """Keep the node while a link is being attached to it.

        The link of the same name that it steals may be the last link of the node.
        """
        node.attaching_links += 1
        try:
            yield
        except BaseException:
            node.attaching_links -= 1
            self._container.forget_unused(node)
            raise
        node.attaching_links -= 1

    def _began(
        self,
        link: IncomingLink,
        inlet_or_outlet: ReceiverInlet | SenderOutlet,
        node: Node,
        made: bool,
        asked: Source | Target | None = None,
    ) -> None:
        if made:
            self._made[inlet_or_outlet] = node
            self.guard.own(node.address)
        self._termini.attach(self._key(link), inlet_or_outlet)
        self.guard.remember(inlet_or_outlet, wanted(link, asked))
        inlet_or_outlet.begin()

    def _address_for(self, asked: Source | Target, node: Node) -> str | None:
        """Return the address for the answer to an attach: the node's own spelling (3.5.3)."""
        if node is self._relay or (self._amqp10.echoes and not asked.dynamic):
            return asked.address
        return node.address

    # -- termini that are kept --------------------------------------------------------------

    def _key(self, link: IncomingLink | ReceiverInlet | SenderOutlet) -> Key:
        """Return the identity of the link among all links of the container (2.6.1)."""
        sends = isinstance(link, (IncomingSender, SenderOutlet))
        role = Role.SENDER if sends else Role.RECEIVER
        return Key(self.container_id, link.name, role, user_of(self.identity))

    def _steal(self, link: IncomingLink) -> None:
        """Take the name from an older link before the node is asked (2.6.1).

        The node may have room for this link only after the older one is gone.
        """
        self._termini.steal(self._key(link))

    def _retention(self, link: IncomingLink, asked: Source | Target, *, storable: bool) -> Retention:
        """Return how long the container keeps the terminus when the link is gone."""
        host = self.connection.host
        return self._termini.grant(self._key(link), host, asked, storable=storable)

    def _claim(
        self,
        link: IncomingLink,
        end: ReceiverInlet | SenderOutlet,
        agreed: Retention,
        terminus: Source | Target,
    ) -> None:
        """Give the link the terminus that is kept for it, if it is kept at all."""
        if not agreed.survives:
            return
        forgotten = link.remote.unsettled is None
        host = self.connection.host
        claimed = self._termini.claim(self._key(link), host, agreed, end, terminus, forgotten=forgotten)
        if isinstance(claimed.terminus, SenderTerminus):
            assert isinstance(end, SenderOutlet)
            end.inherit(claimed.terminus, claimed.outlet_key)
        else:
            assert isinstance(end, ReceiverInlet)
            end.inherit(claimed.terminus)
        if claimed.stored and self._container.journal is not None:
            self._container.journal.after(end.await_store())
        if len(self._claimed) >= self._most_claimed:
            self._forget_claimed()
        if claimed in self._claimed:
            self._disclaim(claimed, self._claimed[claimed])
        # There is one entry for each terminus, however often its link is attached.
        self._claimed[claimed] = end
        ended = partial(self._termini.session_ended, claimed, end)
        if end.session.on_end is None:
            end.session.on_end = {}
        end.session.on_end[claimed] = ended

    def _forget_claimed(self) -> None:
        """Forget termini that are not kept any more; they may be half of all."""
        for claimed, end in list(self._claimed.items()):
            if not self._termini.has(claimed):
                self._disclaim(claimed, end)
        self._most_claimed = max(_FEW, 2 * len(self._claimed))

    def _disclaim(self, retained: RetainedTerminus, end: ReceiverInlet | SenderOutlet) -> None:
        """Forget a terminus that is not kept, or not for a link of this connection."""
        del self._claimed[retained]
        if end.session.on_end is not None:
            end.session.on_end.pop(retained, None)

    def forget(self, link: ReceiverInlet | SenderOutlet, *, closed: bool) -> None:
        """Note that a link is over, and delete a node that was created for it alone."""
        if isinstance(link, SenderOutlet):
            self.stop_waiting(link)
        else:
            self.withheld.pop(link, None)
            if self.withheld:
                self.look_again()
        self.guard.forget(link)
        self._termini.detach(self._key(link), link)
        claimed = self._termini.held_by(self._key(link), link)
        if claimed is not None:
            self._termini.release(claimed, link, closed=closed)
            if not self._termini.has(claimed):
                self._disclaim(claimed, link)
        node = self._made.pop(link, None)
        if node is not None:
            node.has_maker = False
            node.check_used()
            if self._container.nodes.get(node.address) is not node:
                self.guard.disown(node.address)

    def ended(self) -> None:
        """Note that the connection is over."""
        self.coordinator.close()
        super().ended()
        for claimed, link in self._claimed.items():
            self._termini.connection_closed(claimed, link)


def _is_storable(node: Node) -> bool:
    """Whether messages of the node may be in the store, with the link of each lease."""
    return (node.leases_messages or node.keeps_subscriptions) and not node.may_refuse_outcomes


def _keeps(node: Node, owner: Owner | None, name: str) -> bool:
    """Whether the node keeps the subscription of this name, in use or not."""
    try:
        return node.recall(owner, name) is not None
    except RefusedError:
        return True


def _error_of(refusal: RefusedError) -> Error:
    return Error(condition=refusal.condition, description=refusal.description, info=refusal.info)


def _options(link: IncomingReceiver | IncomingSender, *, source: Any, target: Any) -> LinkOptions:
    remote = link.remote
    return LinkOptions(
        snd_settle_mode=SenderSettleMode(remote.snd_settle_mode),
        rcv_settle_mode=ReceiverSettleMode(remote.rcv_settle_mode),
        source=source,
        target=target,
    )


def _paired(link: IncomingLink, node: Node) -> dict[Any, Any] | None:
    """Return the properties that pair this link with the other of its name, or None."""
    properties: Any = link.remote.properties or {}
    return {_PAIRED: True} if node.answers_link_pairs and properties.get(_PAIRED) is True else None


def _actual(asked: Source | Target) -> dict[str, Any] | None:
    """Return the actual properties of a dynamic node."""
    return actual_properties(asked.dynamic_node_properties) if asked.dynamic else None


def _is_to_be_made(asked: Source | Target) -> bool:
    """Whether a dynamic node is asked for.

    It must not have an address, because the container chooses the address (3.5.3, 3.5.4).
    """
    if asked.dynamic and asked.address is not None:
        raise RefusedError(
            Condition.INVALID_FIELD,
            "dynamic=true with an address: the container chooses the address (3.5.3, 3.5.4)",
        )
    return bool(asked.dynamic)


def _checked(address: object) -> str:
    if not isinstance(address, str):
        raise RefusedError(
            Condition.INVALID_FIELD, f"the address has type {type(address).__name__}: expected string"
        )
    return address


def _shared(asked: Sequence[str], node: Node) -> tuple[str, ...]:
    has = (*node.capabilities, *capabilities()) if node.applies_filters and asked else node.capabilities
    return tuple([each for each in asked if str(each) in has])


def _filters(asked: Source, node: Node) -> FilterSet:
    """Return the filters that the node must apply, of the filters asked for (3.5.8)."""
    try:
        return parse_filters(asked.filter if node.applies_filters else None)
    except FilterError as fault:
        raise RefusedError(fault.condition, str(fault)) from fault


def _ends(link: IncomingLink) -> tuple[Any, Session]:
    """Return the engine's link and the session of a link that waits for its answer."""
    if not link.is_waiting:
        raise LocalProtocolError("the peer has detached this link already")
    return link.engine, link.session
