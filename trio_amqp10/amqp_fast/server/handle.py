"""A handle of a client: its commands, carried out on nodes (RFC 006, 3.5).

The name of a destination is the name of the handle, followed by the name in the command (3.5.2.3). ``destinations`` resolves
names to nodes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.conversion.selection import FastSelection, wants_of
from trio_amqp10.amqp_fast.conversion.translate import to_fast, to_standard
from trio_amqp10.amqp_fast.engine.services import Service
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.amqp_fast.wire.message_number_list import write_list
from trio_amqp10.broker.endpoints import PublishedArrival, WindowOutlet
from trio_amqp10.broker.nodes.message_origin import origin_of
from trio_amqp10.broker.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.broker.nodes.turns import each_in_turns, take_steps
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import ReplyCodeRfc011, reply_text

from .destinations import PrefixSubscription
from .faults import code_of, fault_of
from .outlets import ConsumerOutlet, HandleOutlet, ReplyOutlet, do_nothing, look

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.amqp_fast.engine.events import Arrival
    from trio_amqp10.amqp_fast.engine.handle import Handle
    from trio_amqp10.amqp_fast.wire.commands import Command
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.rights.access import Action

    from .channel import ServerChannel

_R = ReplyCodeRfc011
_INDEX_MAX: Final = 10_000
"""The maximum of messages in one INDEX."""


class ServerHandle:
    """One handle.

    Args:
        channel: the channel that the handle belongs to.
        engine: the handle of the engine.

    Attributes:
        channel, engine: as given.
        name: name of the destination, or the common prefix of several names.
        paused: whether the client wants no messages for now.
        prefetch: how many messages may wait for an ACK.
        outlets: the subscriptions of the handle, and the outlets for replies of functions.
    """

    def __init__(self, channel: ServerChannel, engine: Handle) -> None:
        self.channel = channel
        self.engine = engine
        self.name: str = engine.opened.dest_name
        self.paused: bool = False
        self.prefetch = 0
        self.outlets: list[HandleOutlet] = []
        self.over: bool = False
        self._prefixes: list[PrefixSubscription] = []
        self._replies: dict[str, str] = {}  # address for replies, by the address of the function
        self._index: dict[int, Content] = {}
        self._next_number = 1
        self._nodes: dict[int, Node] = {}  # the node of each message in the index

    @property
    def service(self) -> Service:
        """The service that the handle was opened for."""
        return self.engine.service

    def obey(self, arrival: Arrival) -> None:
        """Carry out a command.

        Raises:
            ReplyError, RefusedError: the command is refused; this closes the handle, unless the error has another level.
        """
        command: Any = arrival.command
        if arrival.message is not None:
            with self.channel.sending():
                self._send(arrival)
        else:
            _REACTIONS[type(command)](self, command)

    def reply(self, command: Any, code: int = 200) -> Callable[[], object]:
        """Return a function that confirms a command, if the client asked for that."""
        tag: int = command.confirm_tag

        def write() -> None:
            if tag:
                text = reply_text(_R(code))
                self.channel.write(self, spec.HandleReply(confirm_tag=tag, reply_code=code, reply_text=text))

        return write

    # -- open -------------------------------------------------------------------------------

    def open(self, command: spec.HandleOpen) -> None:
        """Process HANDLE OPEN: create a temporary destination if requested."""
        if not command.temporary:
            self.channel.answer(self, self.reply(command))
            return
        self.channel.ask(self, ("create", command.dest_name or None), partial(self._open_temporary, command))

    def _open_temporary(self, command: spec.HandleOpen) -> None:
        destinations, peer = self.channel.peer.destinations, self.channel.peer
        self.name = destinations.make_temporary(command.dest_name, self.service, self.channel, peer)
        reply = self.reply(command)

        def answer() -> None:
            self.channel.write(self, spec.HandleCreated(dest_name=self.name))
            reply()

        self.channel.answer(self, answer)

    # -- send -------------------------------------------------------------------------------

    def _send(self, arrival: Arrival) -> None:
        command: Any = arrival.command
        if command.streaming:
            raise ReplyError(
                _R.NOT_IMPLEMENTED, "streaming: this server has no service that accepts streams", Level.HANDLE
            )
        name = self.name + command.dest_name
        destinations = self.channel.peer.destinations
        slot = self.channel.reserve(self, self.reply(command))

        def publish_to_one() -> None:
            self._publish(arrival, name, destinations.find_to_send(name, self.service), slot)

        if name:
            self.channel.ask(self, ("send", name), publish_to_one)
        else:
            nodes = destinations.find_to_send(name, self.service)
            self._ask_each("send", nodes, lambda permitted: self._publish(arrival, name, permitted, slot))

    def _ask_each(self, action: Action, nodes: Sequence[Node], then: Callable[[list[Node]], object]) -> None:
        """Call ``then`` with the nodes for which the client has this permission.

        All permissions are asked for at the same time, so that the duration does not reveal how many nodes there are.
        """
        permitted: list[bool | None] = [None] * len(nodes)

        def note(number: int, refusal: RefusedError | None) -> None:
            permitted[number] = refusal is None
            if None not in permitted:
                then([node for node, may in zip(nodes, permitted, strict=True) if may])

        if not nodes:
            then([])
            return
        for number, node in enumerate(nodes):
            self.channel.ask_whether(self, (action, node.address), partial(note, number))

    def _ask_to_receive(self, name: str, then: Callable[[list[Node], bool], object]) -> None:
        """Call ``then`` with the node of this name, or with the nodes below it and True.

        A node that the client may not receive from is treated as missing. For a client without any permission, the questions and
        the answer are the same whether nodes exist or not; the questions are asked at the same time.
        """
        service, destinations, owner = self.service, self.channel.peer.destinations, self.channel.peer.owner
        named: list[RefusedError | None] = []  # the decision about the name itself, when it is known
        below: list[Node] | None = None
        decided = False

        def find_named() -> Node | None:
            return destinations.find_one(name, service) if named and named[0] is None else None

        def on_named(refusal: RefusedError | None) -> None:
            named.append(refusal)
            decide()

        def on_below(permitted: list[Node]) -> None:
            nonlocal below
            below = permitted
            decide()

        def decide() -> None:
            nonlocal decided
            node = find_named()
            if decided or not named or (node is None and below is None):
                return
            decided = True
            if node is not None:
                destinations.check_owner(node, owner)
                then([node], False)
            elif below:
                then(below, True)
            else:
                raise named[0] or RefusedError(
                    Condition.NOT_FOUND,
                    f"there is no {service.name.lower()} with the name {name!r}, or with a name that begins with it",
                )

        self.channel.ask_whether(self, ("receive", name), on_named)
        if find_named() is None:
            self._ask_each("receive", destinations.find_below(name, service), on_below)

    def _publish(
        self, arrival: Arrival, name: str, nodes: Sequence[Node], slot: Callable[[], object]
    ) -> None:
        assert arrival.message is not None
        channel = self.channel
        peer = channel.peer
        transacted = channel.engine.transacted
        # A posted message waits for the commit, and counts as placed until then.
        waiting = _Waiting(0 if transacted else len(nodes), slot, partial(channel.fail, self))
        for node in nodes:
            message = to_standard(arrival.message, self.engine.opened, reply_to=self._reply_address(node))
            published = PublishedArrival(peer.destinations.content_of(message), waiting.on_answer)
            if transacted:
                channel.transaction.post(node, published, published.content.size, (name or node.address,))
            else:
                peer.publisher.publish(node.address, published)
        if transacted or not nodes:
            slot()
        peer.on_publish()

    def _reply_address(self, node: Node) -> str | None:
        """Return the address for replies of a function; None for other nodes."""
        if self.service is not Service.PEER or not node.accepts_receivers:
            return None
        address = self._replies.get(node.address)
        if address is None:
            address = self._replies[node.address] = f"amqp-fast/{self.channel.peer.number}/{self.engine.id}"
            outlet = ReplyOutlet(self, node, address)
            self._begin(outlet, node)
        return address

    # -- consume ----------------------------------------------------------------------------

    def consume(self, command: spec.HandleConsume) -> None:
        name = self.name + command.dest_name
        peer = self.channel.peer
        not_from = origin_of(peer) if command.no_local else None
        selection = FastSelection(command.selector, command.mime_type, not_from)
        wants = wants_of(selection)
        begin = partial(self._begin_consumer, command, wants, selection if wants is not None else None)

        def begin_all(permitted: list[Node], of_prefix: bool) -> None:
            self.prefetch += command.prefetch
            self.channel.answer(self, self.reply(command))
            if of_prefix:
                self._begin_prefix(name, command.identifier, begin, permitted)
            else:
                begin(permitted[0], of_prefix=False)

        self._ask_to_receive(name, begin_all)

    def _begin_prefix(
        self, name: str, identifier: str, begin: Callable[..., object], nodes: Sequence[Node]
    ) -> None:
        """Subscribe to all current and future nodes of a prefix.

        Nodes that refuse the subscription are skipped.
        """

        def subscribe(node: Node, refusal: RefusedError | None) -> None:
            if refusal is None and prefix in self._prefixes:
                prefix.subscribe(node)

        def ask(node: Node) -> None:
            self.channel.ask_whether(self, ("receive", node.address), partial(subscribe, node))

        prefix = PrefixSubscription(name, self.service, identifier, begin, ask)
        for node in nodes:
            prefix.subscribe(node)
        self._prefixes.append(prefix)
        self.channel.peer.destinations.watch(prefix)

    def _begin_consumer(
        self,
        command: spec.HandleConsume,
        wants: Wants | None,
        selection: FastSelection | None,
        node: Node,
        *,
        of_prefix: bool,
    ) -> None:
        outlet = ConsumerOutlet(
            self,
            node,
            command.identifier,
            unreliable=command.unreliable,
            of_prefix=of_prefix,
            wants=wants,
            subscription_terms=self._terms(command.identifier, node, selection),
        )
        self._begin(outlet, node)

    def _terms(self, identifier: str, node: Node, selection: FastSelection | None) -> SubscriptionTerms:
        owner = self.channel.peer.owner
        if identifier:
            return SubscriptionTerms(
                name=identifier, owner=owner, lasting=math.inf, durable=True, selection=selection
            )
        own = f"{self.channel.peer.number}/{self.channel.engine.id}/{self.engine.id}/{len(self.outlets)}"
        name = own if self.service is Service.TOPIC else node.address
        return SubscriptionTerms(name=name, owner=owner, selection=selection)

    def _begin(self, outlet: HandleOutlet, node: Node) -> None:
        peer = self.channel.peer
        peer.check_link()
        peer.check_outlet(
            node, copying=False, target=outlet.target, subscription_terms=outlet.subscription_terms
        )
        self.outlets.append(outlet)
        # Replies need no permission, because they answer messages that were permitted.
        if isinstance(outlet, ConsumerOutlet):
            peer.guard.remember(outlet, ("receive", node.address))
        outlet.begin()

    def on_outlet_closed(self, outlet: HandleOutlet, condition: str | None, description: str | None) -> None:
        """Process the end of a subscription by its node, for example after a deletion.

        The handle is closed, unless the subscription was one of a prefix.
        """
        if self.over:
            return
        if isinstance(outlet, ConsumerOutlet) and outlet.of_prefix:
            self.outlets.remove(outlet)
            self.channel.peer.guard.forget(outlet)
            return
        self.channel.fail(
            self, ReplyError(code_of(condition), description or "the destination was deleted", Level.HANDLE)
        )

    def cancel(self, command: spec.HandleCancel) -> None:
        name = self.name + command.dest_name
        peer = self.channel.peer
        # Only the client's own subscription is searched, so that the answer does not reveal other nodes.
        nodes = peer.destinations.find_below(name, self.service)
        if (node := peer.destinations.find_one(name, self.service)) is not None:
            nodes = [node]
        self._end_prefixes(command.identifier, name)
        for outlet in list(self.outlets):
            if isinstance(outlet, ConsumerOutlet) and outlet.identifier == command.identifier:
                self._end_outlet(outlet)
        known = [(node, terms) for node in nodes if (terms := node.recall(peer.owner, command.identifier))]
        if not known:
            raise RefusedError(Condition.NOT_FOUND, f"there is no subscription {command.identifier!r}")
        for node, terms in known:
            last = WindowOutlet(peer, node, do_nothing, do_nothing, window=0, subscription_terms=terms)
            last.begin()
            last.end()  # This deletes the durable subscription.
        self.channel.answer(self, self.reply(command))

    def flow(self, command: spec.HandleFlow) -> None:
        self.paused = command.flow_pause
        self.channel.answer(self, self.reply(command))

    def unget(self, command: spec.HandleUnget) -> None:
        """Process HANDLE UNGET: return the message to its place in the queue."""
        lease = self.channel.leases.pop(command.message_nbr, None)
        if lease is not None:
            lease.released()
        self.channel.answer(self, self.reply(command))

    # -- browse -----------------------------------------------------------------------------

    def query(self, command: spec.HandleQuery) -> None:
        name = self.name + command.dest_name
        peer = self.channel.peer
        selects = wants_of(FastSelection(command.selector, command.mime_type))

        def list_them(permitted: list[Node], _of_prefix: bool) -> None:
            numbers = self._look(permitted, lambda content: selects is None or selects(content, None))
            numbers = [number for number in numbers if number > command.message_nbr]
            largest = min(peer.engine.frame_max - 64, 0xFFFF)
            listed, highest = write_list(numbers[:_INDEX_MAX], largest)
            if not highest and len(numbers) > _INDEX_MAX:
                highest = numbers[_INDEX_MAX - 1]
            index = spec.HandleIndex(message_nbr=highest, message_list=listed)
            self.channel.answer(self, lambda: self.channel.write(self, index))

        self._ask_to_receive(name, list_them)

    def _look(self, nodes: Sequence[Node], selects: Callable[[Content], bool]) -> list[int]:
        """Number the messages of the nodes; return the numbers of the selected messages.

        A message keeps its number from an earlier query.
        """
        known = {id(content): number for number, content in self._index.items()}
        found: dict[int, Content] = {}
        places: dict[int, Node] = {}
        selected: list[int] = []

        def note(node: Node, content: Content) -> bool:
            number = known.get(id(content))
            if number is None:
                number, self._next_number = self._next_number, self._next_number + 1
            found[number], places[number] = content, node
            if selects(content):
                selected.append(number)
            return False

        for node in nodes:
            look(self, node, partial(note, node))
        self._index, self._nodes = found, places
        return sorted(selected)

    def browse(self, command: spec.HandleBrowse) -> None:
        number = command.message_nbr
        wanted, node = self._index.get(number), self._nodes.get(number)
        content = None
        if wanted is not None and node is not None:
            content = look(self, node, lambda each: each is wanted)
        if content is None:
            text = reply_text(_R.MESSAGE_NOT_FOUND)
            missing = spec.HandleReply(
                confirm_tag=command.confirm_tag, reply_code=_R.MESSAGE_NOT_FOUND, reply_text=text
            )
            self.channel.answer(self, lambda: self.channel.write(self, missing))
            return
        message, reply, address = to_fast(content), self.reply(command), "" if node is None else node.address

        def answer() -> None:
            if self.channel.is_open(self):
                self.engine.show(number, message, address)
                reply()

        self.channel.answer(self, answer)

    # -- close ------------------------------------------------------------------------------

    def _end_outlet(self, outlet: HandleOutlet) -> None:
        self.outlets.remove(outlet)
        self.channel.peer.guard.forget(outlet)
        outlet.stop()

    def _end_prefixes(self, identifier: str | None = None, name: str | None = None) -> None:
        """Stop watching for new nodes of the matching prefixes; of all if none is given."""
        for prefix in list(self._prefixes):
            if identifier is None or (prefix.identifier, prefix.prefix) == (identifier, name):
                self._prefixes.remove(prefix)
                self.channel.peer.destinations.unwatch(prefix)

    def end(self) -> None:
        """End the handle: unacknowledged messages are returned to their nodes."""
        if self.over:
            return
        self.over = True
        self._end_prefixes()
        outlets = {id(outlet) for outlet in self.outlets}
        for outlet in list(self.outlets):
            self._end_outlet(outlet)
        channel = self.channel

        def lose(number: int) -> None:
            # There is no lease if the channel has ended meanwhile, because its end returns all messages.
            lease = channel.leases.get(number)
            if lease is not None and id(lease.outlet) in outlets and number not in channel.acked:
                del channel.leases[number]
                lease.lost()

        turns = channel.peer.turns
        take_steps(turns, each_in_turns(turns, iter(list(channel.leases)), lose))
        self._index.clear()
        self._nodes.clear()


class _Waiting:
    """The pending answers of nodes about one message.

    Args:
        left: how many nodes must answer.
        done: called when all nodes have accepted the message.
        fail: called with the error of the first node that refuses it.
    """

    def __init__(self, left: int, done: Callable[[], object], fail: Callable[[ReplyError], object]) -> None:
        self._left = left
        self._done = done
        self._fail = fail

    def on_answer(self, refusal: RefusedError | None) -> None:
        """Process the answer of one node."""
        if refusal is not None:
            self._fail(fault_of(refusal))
            return
        self._left -= 1
        if not self._left:
            self._done()


_REACTIONS: Final[Mapping[type[Command], Callable[[ServerHandle, Any], object]]] = {
    spec.HandleOpen: ServerHandle.open,
    spec.HandleConsume: ServerHandle.consume,
    spec.HandleCancel: ServerHandle.cancel,
    spec.HandleFlow: ServerHandle.flow,
    spec.HandleUnget: ServerHandle.unget,
    spec.HandleQuery: ServerHandle.query,
    spec.HandleBrowse: ServerHandle.browse,
}
