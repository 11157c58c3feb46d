"""One handle of a client of AMQP/Fast: what its commands do with the nodes of the container (RFC 006, 3.5).

The name of a destination is the name of the handle with the name in the command behind it (3.5.2.3). Knows nodes by
``destinations``, and its channel.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.faults import Level, ReplyError
from trio_amqp10.amqp_fast.message_list import write_list
from trio_amqp10.amqp_fast.services import Service
from trio_amqp10.container.endpoints import PublishedArrival, WindowOutlet
from trio_amqp10.container.nodes.node import RefusedError, SubscriptionTerms
from trio_amqp10.container.nodes.origins import origin_of
from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import ReplyCodeRfc011, reply_text

from .faults import code_of, fault_of
from .outlets import ConsumerOutlet, HandleOutlet, ReplyOutlet, look
from .selection import FastSelection, wants_of
from .translate import to_fast, to_standard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.amqp_fast.commands import Command
    from trio_amqp10.amqp_fast.events import Arrival
    from trio_amqp10.amqp_fast.handle import Handle
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Node

    from .channel import ServerChannel

__all__ = ["ServerHandle"]

_R = ReplyCodeRfc011
_INDEX_MAX: Final = 10_000
"""Messages that one INDEX names."""


class ServerHandle:
    """One handle.

    Args:
        channel: whose it is.
        engine: the handle of the engine.

    Attributes:
        channel, engine: as given.
        name: of the destination, or what the names of several begin with.
        paused: whether the client wants no messages for now.
        prefetch: messages that may wait for an ACK.
        outlets: its subscriptions, and where functions send their replies.
    """

    def __init__(self, channel: ServerChannel, engine: Handle) -> None:
        self.channel = channel
        self.engine = engine
        self.name = engine.opened.dest_name
        self.paused = False
        self.prefetch = 0
        self.outlets: list[HandleOutlet] = []
        self.over = False
        self._replies: dict[str, str] = {}  # the address for replies, by that of the function
        self._index: dict[int, Content] = {}
        self._next_number = 1
        self._nodes: dict[int, Node] = {}  # that has each message of the index

    @property
    def service(self) -> Service:
        """Which service it is for."""
        return self.engine.service

    def obey(self, arrival: Arrival) -> None:
        """Do what a command says.

        Raises:
            ReplyError, RefusedError: it cannot be; the handle is closed, unless the error says more.
        """
        command: Any = arrival.command
        if arrival.message is not None:
            self._send(arrival)
        else:
            _REACTIONS[type(command)](self, command)

    def reply(self, command: Any, code: int = 200) -> Callable[[], object]:
        """What confirms a command, if the client asked for that."""
        tag: int = command.confirm_tag

        def write() -> None:
            if tag:
                text = reply_text(_R(code))
                self.channel.write(self, spec.HandleReply(confirm_tag=tag, reply_code=code, reply_text=text))

        return write

    # -- open -------------------------------------------------------------------------------

    def open(self, command: spec.HandleOpen) -> None:
        """HANDLE OPEN: make a temporary destination, if one is asked for."""
        if not command.temporary:
            self.channel.answer(self, self.reply(command))
            return
        self.channel.ask(self, ("create", None), partial(self._open_temporary, command))

    def _open_temporary(self, command: spec.HandleOpen) -> None:
        destinations, peer = self.channel.peer.destinations, self.channel.peer
        self.name = destinations.make_temporary(
            command.dest_name, self.service, peer.client_name, self.channel
        )
        reply = self.reply(command)

        def answer() -> None:
            self.channel.write(self, spec.HandleCreated(dest_name=self.name))
            reply()

        self.channel.answer(self, answer)

    # -- send -------------------------------------------------------------------------------

    def _send(self, arrival: Arrival) -> None:
        command: Any = arrival.command
        if command.streaming:
            raise ReplyError(_R.NOT_IMPLEMENTED, "streaming: no service here takes a stream", Level.HANDLE)
        name = self.name + command.dest_name
        nodes = self.channel.peer.destinations.find_to_send(name, self.service)
        slot = self.channel.reserve(self, self.reply(command))
        if name:
            self.channel.ask(self, ("send", name), partial(self._publish, arrival, nodes, slot))
        else:
            self._ask_each(arrival, nodes, [], slot)

    def _ask_each(
        self, arrival: Arrival, nodes: Sequence[Node], permitted: list[Node], slot: Callable[[], object]
    ) -> None:
        """To every destination there is that the client may write to."""
        if not nodes:
            self._publish(arrival, permitted, slot)
            return
        node, *rest = nodes

        def ask_next(may: bool) -> None:
            self._ask_each(arrival, rest, [*permitted, node] if may else permitted, slot)

        self.channel.ask_whether(("send", node.address), ask_next)

    def _publish(self, arrival: Arrival, nodes: Sequence[Node], slot: Callable[[], object]) -> None:
        assert arrival.message is not None
        channel = self.channel
        peer = channel.peer
        transacted = channel.engine.transacted
        # What is posted waits for the commit, and counts as placed.
        waiting = _Waiting(0 if transacted else len(nodes), slot, partial(channel.fail, self))
        for node in nodes:
            message = to_standard(arrival.message, self.engine.opened, reply_to=self._reply_address(node))
            published = PublishedArrival(peer.destinations.content_of(message), waiting.on_answer)
            if transacted:
                channel.transaction.post(node, published, published.content.size)
            else:
                peer.publisher.publish(node.address, published)
        if transacted or not nodes:
            slot()
        peer.on_publish()

    def _reply_address(self, node: Node) -> str | None:
        """Where a function is to send its reply; None for nodes that give none."""
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
        nodes = peer.destinations.find_to_receive(name, self.service, peer.client_name)

        def begin() -> None:
            self.prefetch += command.prefetch
            self.channel.answer(self, self.reply(command))
            for node in nodes:
                terms = self._terms(command.identifier, node, selection if wants is not None else None)
                outlet = ConsumerOutlet(
                    self,
                    node,
                    command.identifier,
                    unreliable=command.unreliable,
                    wants=wants,
                    subscription_terms=terms,
                )
                self._begin(outlet, node)

        self.channel.ask(self, ("receive", name), begin)

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
        peer.guard.remember(outlet, ("receive", node.address))
        outlet.begin()

    def on_outlet_closed(self, condition: str | None, description: str | None) -> None:
        """A node has ended a subscription, e.g. because it was deleted: so is the handle."""
        if not self.over:
            code = code_of(condition)
            self.channel.fail(self, ReplyError(code, description or "the destination is gone", Level.HANDLE))

    def cancel(self, command: spec.HandleCancel) -> None:
        name = self.name + command.dest_name
        peer = self.channel.peer
        (node,) = peer.destinations.find_to_send(name, self.service)
        for outlet in list(self.outlets):
            if isinstance(outlet, ConsumerOutlet) and outlet.identifier == command.identifier:
                self._end_outlet(outlet)
        terms = node.recall(peer.owner, command.identifier)
        if terms is None:
            raise RefusedError(Condition.NOT_FOUND, f"no subscription {command.identifier!r}")
        last = WindowOutlet(peer, node, _nothing, _nothing, window=0, subscription_terms=terms)
        last.begin()
        last.end()  # it is final
        self.channel.answer(self, self.reply(command))

    def flow(self, command: spec.HandleFlow) -> None:
        self.paused = command.flow_pause
        self.channel.answer(self, self.reply(command))

    def unget(self, command: spec.HandleUnget) -> None:
        """HANDLE UNGET: the message goes back to its place."""
        lease = self.channel.leases.pop(command.message_nbr, None)
        if lease is not None:
            lease.released()
        self.channel.answer(self, self.reply(command))

    # -- browse -----------------------------------------------------------------------------

    def query(self, command: spec.HandleQuery) -> None:
        name = self.name + command.dest_name
        peer = self.channel.peer
        selects = wants_of(FastSelection(command.selector, command.mime_type))
        nodes = peer.destinations.find_to_receive(name, self.service, peer.client_name)

        def list_them() -> None:
            numbers = self._look(nodes, lambda content: selects is None or selects(content, None))
            numbers = [number for number in numbers if number > command.message_nbr]
            largest = min(peer.engine.frame_max - 64, 0xFFFF)
            listed, highest = write_list(numbers[:_INDEX_MAX], largest)
            if not highest and len(numbers) > _INDEX_MAX:
                highest = numbers[_INDEX_MAX - 1]
            index = spec.HandleIndex(message_nbr=highest, message_list=listed)
            self.channel.answer(self, lambda: self.channel.write(self, index))

        self.channel.ask(self, ("receive", name), list_them)

    def _look(self, nodes: Sequence[Node], selects: Callable[[Content], bool]) -> list[int]:
        """Number what there is; what had a number keeps it."""
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

    # -- the end ----------------------------------------------------------------------------

    def _end_outlet(self, outlet: HandleOutlet) -> None:
        self.outlets.remove(outlet)
        self.channel.peer.guard.forget(outlet)
        outlet.stop()

    def end(self) -> None:
        """Nothing more is done: what the client has not acknowledged goes back."""
        if self.over:
            return
        self.over = True
        outlets = {id(outlet) for outlet in self.outlets}
        for outlet in list(self.outlets):
            self._end_outlet(outlet)
        channel = self.channel
        for number, lease in list(channel.leases.items()):
            if id(lease.outlet) in outlets and number not in channel.acked:
                del channel.leases[number]
                lease.lost()
        self._index.clear()
        self._nodes.clear()


class _Waiting:
    """Counts the nodes that have to answer for one message.

    Args:
        left: how many.
        done: called when all have accepted it.
        fail: called with the error of the first that did not.
    """

    def __init__(self, left: int, done: Callable[[], object], fail: Callable[[ReplyError], object]) -> None:
        self._left = left
        self._done = done
        self._fail = fail

    def on_answer(self, refusal: RefusedError | None) -> None:
        """One of them has answered."""
        if refusal is not None:
            self._fail(fault_of(refusal))
            return
        self._left -= 1
        if not self._left:
            self._done()


def _nothing(*_: object) -> None:
    """Nothing is to be done."""


_REACTIONS: Final[Mapping[type[Command], Callable[[ServerHandle, Any], object]]] = {
    spec.HandleOpen: ServerHandle.open,
    spec.HandleConsume: ServerHandle.consume,
    spec.HandleCancel: ServerHandle.cancel,
    spec.HandleFlow: ServerHandle.flow,
    spec.HandleUnget: ServerHandle.unget,
    spec.HandleQuery: ServerHandle.query,
    spec.HandleBrowse: ServerHandle.browse,
}
