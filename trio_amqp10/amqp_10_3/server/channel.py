"""A channel of a client: adds tickets, files, streams, branches and tunnels.

The table of methods consists of those that 0-9-1 and 10.3 share, and those of 10.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp091.server.channel import TRANSACT, ServerChannel
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.broker.nodes.refusals import OutletKey
from trio_amqp10.core.reply_codes import ReplyCode091, reply_text

from .branch import Branch
from .channel_base import ChannelBase
from .consuming import Consuming103
from .declaring import DECLARING
from .files import FileTransfers
from .publishing import Publishing103
from .tickets import Ticket, rights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.channel import Channel
    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.broker.transactions import Transaction

    from .connection import ServedConnection103
    from .options import Options

_WORKING: Final = ("basic.", "file.", "stream.")
"""The classes whose methods publish and consume."""


class ServerChannel103(ChannelBase):
    """One channel; see ``ChannelBase``.

    Args:
        peer: the client that the channel belongs to.
        engine: the channel of the engine.
        prefetch_max: limit of octets of unsettled deliveries; 0 for no limit (C 516-518).
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
        """Return the publishing of the channel."""
        return Publishing103(self)

    def make_consuming(self) -> Consuming103:
        """Return the deliveries of the channel."""
        self.consuming103: Consuming103 = Consuming103(self)
        return self.consuming103

    def _obey(self, arrival: Arrival) -> None:
        super()._obey(arrival)
        if arrival.method.plan.name.startswith(_WORKING):
            self._worked = True

    def _fail(self, fault: ReplyError) -> None:
        refused = fault.code is ReplyCode091.ACCESS_REFUSED
        if refused and self._method is not None and self._method.plan.name == "access.request":
            # A refused access.request closes the connection, not only the channel (C 620-621).
            fault = ReplyError(fault.code, fault.description, hard=True)
        super()._fail(fault)

    # -- tickets ----------------------------------------------------------------------------

    def check_ticket(self, number: int, right: str) -> None:
        """Raise ``ReplyError`` if the ticket does not permit this; see ``Tickets.check``."""
        self._peer103.tickets.check(self, number, right)

    def on_access_request(self, arrival: Arrival) -> None:
        """Process access.request (C 610-652).

        A ticket adds no permission: each method checks permissions again.
        """
        method: Any = arrival.method
        ticket = Ticket(method.realm, method.exclusive, rights_of(method))
        number = self._peer103.tickets.request(self, ticket)
        self.reply(self.make("access.request-ok", ticket=number))

    # -- alerts -----------------------------------------------------------------------------

    def alert_cancelled(self, tag: str, description: str | None) -> None:
        """Send an alert about a consumer that the client did not end (C 561-564)."""
        code = ReplyCode091.NOT_FOUND
        text = reply_text(code, description or "the queue is gone")
        alert = {"reply_code": code, "reply_text": text, "details": {"consumer_tag": tag}}
        self.reply(self.make("channel.alert", **alert))

    # -- distributed transactions -----------------------------------------------------------

    def on_dtx_select(self, _arrival: Arrival) -> None:
        """Process dtx.select; it is refused with 540 if the program has no coordinator."""
        if self.options.on_branch is None:
            raise ReplyError(
                ReplyCode091.NOT_IMPLEMENTED, "there is no coordinator of distributed transactions"
            )
        self.ask(TRANSACT, self._select_dtx)

    def _select_dtx(self) -> None:
        self._distributed = True
        self.reply(self.make("dtx.select-ok"))

    def on_dtx_start(self, arrival: Arrival) -> None:
        """Process dtx.start: begin a branch, before any other work (C 1516-1517)."""
        method: Any = arrival.method
        coordinator = self.options.on_branch
        if coordinator is None or not self._distributed:
            raise ReplyError(ReplyCode091.COMMAND_INVALID, "dtx.start without dtx.select before it")
        if self._worked or self.transactional:
            raise ReplyError(
                ReplyCode091.COMMAND_INVALID, "dtx.start must come before all other work on its channel"
            )
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
        """Close the channel if the commit failed: dtx has no method to report that."""
        if branch is not None and transaction.failure is not None:
            branch.failure = transaction.failure[1]
        self._resume(partial(self.check_committed, transaction), None)

    # -- tunnels ----------------------------------------------------------------------------

    def on_tunnel_request(self, arrival: Arrival) -> None:
        """Pass tunnel.request to the program; drop it without a function for it."""
        method: Any = arrival.method
        assert arrival.content is not None
        if self.options.on_tunnel is not None:
            self.options.on_tunnel(self.peer, method.meta_data, arrival.content)

    # -- close ------------------------------------------------------------------------------

    def end(self) -> None:
        """End the channel: roll back the branch, and keep incomplete files for later."""
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
    """The function for each method; any other method is answered with 540."""
