"""A connection of the client of 10.3 (class connection, C 273-437)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trio_amqp10.amqp091.client.channel_opening import ChannelOpening
from trio_amqp10.amqp091.client.connection_base import ConnectionBase
from trio_amqp10.amqp091.engine.events import ContentAborted, Redirected
from trio_amqp10.net.option_signatures import takes_on

from .channel import Channel, ChannelOptions, Transaction
from .errors import RedirectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.events import Event
    from trio_amqp10.amqp_10_3.spec import AccessRequest


class Connection(ConnectionBase[Channel]):
    """One connection, as returned by ``open_connection``.

    Attributes:
        engine, pump: engine and pump of the current, or latest, transport.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: restores the connection after a loss; None without ``reconnect``.
        topology: the declarations made on the connection.
        channels: the channels that are not closed.
        loss: the reason why the connection was last lost; None if it never was.
        access: the latest request for a ticket with ``active`` access, which recovery uses to declare again; None if there was
            none.
    """

    access: AccessRequest | None = None

    @takes_on(ChannelOptions)
    def open_channel(self, options: ChannelOptions) -> ChannelOpening[Channel]:
        """Open a channel, with an access ticket (10.3, channel.open).

        Use it as ``async with connection.open_channel() as channel``.

        Args:
            prefetch: limit of unsettled deliveries for each consumer of the channel, 1 to 65535; None for no limit.
            prefetch_octets: limit of octets of unsettled deliveries for all consumers together; 0 for no limit.
            realm: the realm of the ticket; None for no ticket, if the server does not require one.
            exclusive: no other channel may have a ticket for the realm.
            rights: the rights of the ticket; see ``Channel.request_access``. The server may still refuse each method.

        Raises (on entering):
            LocalProtocolError: the maximum of channels is open, or an argument is out of its range.
            ChannelClosedError: there is no such realm (402).
            ConnectionClosedError: the user may not have this ticket, or the realm is in exclusive use (403); or the connection is
                closed or lost.
            trio.ClosedResourceError: the connection was closed here.
        """
        return ChannelOpening(lambda: Channel(self, options))

    @takes_on(ChannelOptions)
    def open_transaction(self, options: ChannelOptions) -> ChannelOpening[Transaction]:
        """Open a channel with transactions (10.3, tx.select).

        Leaving the block commits, or rolls back after an exception.

        Args and Raises (on entering): as ``open_channel``.
        """
        return ChannelOpening(lambda: Transaction(self, options))

    def declaring_channel(self) -> Channel:
        """Return a channel to declare on again, with a ticket if the program uses tickets."""
        access = self.access
        realm = None if access is None else access.realm
        return Channel(self, ChannelOptions(prefetch=None, realm=realm, rights=("passive", "active")))

    # -- events of the engine ---------------------------------------------------------------

    def _on_redirected(self, event: Redirected) -> None:
        self.go_down(RedirectedError(event.host, event.known_hosts))

    def _on_aborted(self, event: ContentAborted) -> None:
        channel = self.attached.get(event.channel)
        if isinstance(channel, Channel) and event.request is not None:
            channel.on_aborted(event.request)

    REACTIONS: ClassVar[Mapping[type[Event], Callable[[Any, Any], None]]] = {
        **ConnectionBase.REACTIONS,
        Redirected: _on_redirected,
        ContentAborted: _on_aborted,
    }
