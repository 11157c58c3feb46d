"""One channel of a client of 10.3, on that of 0-9-1: tickets, files, streams, branches of transactions, tunnels.

Knows methods by their tables: those of 0-9-1 that 10.3 has too, and its own.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.container.nodes.refusals import OutletKey
from trio_amqp10.container.protocols.amqp091.channel import TRANSACT, ServerChannel
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .branch import Branch
from .channel_base import ChannelBase
from .consuming import Consuming103
from .declaring import DECLARING
from .files import FileTransfers
from .publishing import Publishing103
from .tickets import Ticket, rights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.channel import Channel
    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.container.transactions import Transaction

    from .connection import ServedConnection103
    from .options import Options

__all__ = ["ServerChannel103"]

_WORKING: Final = ("basic.", "file.", "stream.")
"""The classes that publish and consume."""


class ServerChannel103(ChannelBase):
    """One channel; see ``ChannelBase``.

    Args:
        peer: whose it is.
        engine: the channel of the engine.
        prefetch_max: octets that may be out on it; 0 for any number (C 516-518).
    """

    __slots__ = ("_branch", "_distributed", "_peer103", "_worked")

    def __init__(self, peer: ServedConnection103, engine: Channel, prefetch_max: int) -> None:
        self.options: Options = peer.options
        self.prefetch_max = prefetch_max
        self.outlet_key: OutletKey = OutletKey()
        self._peer103 = peer
        self._distributed = False
        self._worked = False
        self._branch: Branch | None = None
        super().__init__(peer, engine)
        self.files: FileTransfers = FileTransfers(self)

    def make_publishing(self) -> Publishing103:
        """What it publishes."""
        return Publishing103(self)

    def make_consuming(self) -> Consuming103:
        """What it receives."""
        self.consuming103: Consuming103 = Consuming103(self)
        return self.consuming103

    def _obey(self, arrival: Arrival) -> None:
        super()._obey(arrival)
        if arrival.method.plan.name.startswith(_WORKING):
            self._worked = True

    def _fail(self, fault: ReplyError) -> None:
        refused = fault.code is ReplyCode091.ACCESS_REFUSED
        if refused and self._method is not None and self._method.plan.name == "access.request":
            fault = ReplyError(fault.code, fault.description, hard=True)  # C 620-621
        super()._fail(fault)

    # -- tickets ----------------------------------------------------------------------------

    def check_ticket(self, number: int, right: str) -> None:
        """See ``Tickets.check``."""
        self._peer103.tickets.check(self, number, right)

    def on_access_request(self, arrival: Arrival) -> None:
        """access.request: a ticket (C 610-652). It permits no more than each method does that names it, which asks itself."""
        method: Any = arrival.method
        ticket = Ticket(method.realm, method.exclusive, rights_of(method))
        number = self._peer103.tickets.request(self, ticket)
        self.reply(self.make("access.request-ok", ticket=number))

    # -- alerts -----------------------------------------------------------------------------

    def alert_cancelled(self, tag: str, description: str | None) -> None:
        """A consumer has ended without the client's doing (C 561-564)."""
        code = ReplyCode091.NOT_FOUND
        text = reply_text(code, description or "the queue is gone")
        alert = {"reply_code": code, "reply_text": text, "details": {"consumer_tag": tag}}
        self.reply(self.make("channel.alert", **alert))

    # -- distributed transactions -----------------------------------------------------------

    def on_dtx_select(self, _arrival: Arrival) -> None:
        """dtx.select: possible where the program has a coordinator; refused with 540 otherwise."""
        if self.options.on_branch is None:
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, "there is no coordinator of distributed transactions"
            )
        self.ask(TRANSACT, self._select_dtx)

    def _select_dtx(self) -> None:
        self._distributed = True
        self.reply(self.make("dtx.select-ok"))

    def on_dtx_start(self, arrival: Arrival) -> None:
        """dtx.start: a branch, before anything is published or consumed (C 1516-1517)."""
        method: Any = arrival.method
        coordinator = self.options.on_branch
        if coordinator is None or not self._distributed:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "dtx.start without dtx.select before it")
        if self._worked or self.transactional:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "dtx.start is the first work of its channel")
        self.transactional: bool = True
        branch = self._branch = Branch(method.dtx_identifier, partial(self._end_branch, self.transaction))
        coordinator(branch)
        self.reply(self.make("dtx.start-ok"))

    def _end_branch(self, transaction: Transaction, commits: bool) -> None:
        self.transactional = False
        branch, self._branch = self._branch, None
        self._transaction = None
        if commits:
            self._waits += 1
            transaction.commit(partial(self._on_branch_committed, branch, transaction))
        else:
            transaction.rollback()
        self.run()

    def _on_branch_committed(self, branch: Branch | None, transaction: Transaction) -> None:
        """A branch that could not be committed ends its channel: dtx has no method that says so."""
        if branch is not None and transaction.failure is not None:
            branch.failure = transaction.failure[1]
        self._resume(partial(self.check_committed, transaction), None)

    # -- tunnels ----------------------------------------------------------------------------

    def on_tunnel_request(self, arrival: Arrival) -> None:
        """tunnel.request: what it carries is the program's; without a program it is dropped."""
        method: Any = arrival.method
        assert arrival.content is not None
        if self.options.on_tunnel is not None:
            self.options.on_tunnel(self.peer, method.meta_data, arrival.content)

    # -- the end ----------------------------------------------------------------------------

    def end(self) -> None:
        """As for ``ServerChannel``; a branch is rolled back, and files that are not whole are kept for the next time."""
        branch, self._branch = self._branch, None
        if branch is not None:
            branch.over = True
        super().end()
        self.outlet_key.end()
        self.files.end()
        self._peer103.tickets.forget(self)

    REACTIONS: ClassVar[Mapping[str, Callable[[Any, Arrival], object]]] = {
        **{
            name: react
            for name, react in ServerChannel.REACTIONS.items()
            if name.startswith(("basic.", "tx.", "channel."))
        },
        **DECLARING,
        "access.request": on_access_request,
        "file.consume": lambda channel, arrival: channel.consuming.consume(arrival),
        "file.cancel": lambda channel, arrival: channel.consuming.cancel(arrival),
        "file.open": lambda channel, arrival: channel.files.open(arrival),
        "file.open-ok": lambda channel, arrival: channel.files.open_ok(arrival),
        "file.stage": lambda channel, arrival: channel.files.stage(arrival),
        "file.publish": lambda channel, arrival: channel.publishing.publish_file(arrival),
        "file.ack": lambda channel, arrival: channel.consuming.acknowledge(arrival),
        "file.reject": lambda channel, arrival: channel.consuming.reject(arrival),
        "stream.consume": lambda channel, arrival: channel.consuming.consume(arrival),
        "stream.cancel": lambda channel, arrival: channel.consuming.cancel(arrival),
        "stream.publish": lambda channel, arrival: channel.publishing.publish(arrival),
        "dtx.select": on_dtx_select,
        "dtx.start": on_dtx_start,
        "tunnel.request": on_tunnel_request,
    }
    """What is done with each method; any other is answered with 540."""
