"""A connection of the client of 10.3: its channels and transactions, and redirects (class connection, C 273-437)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trio_amqp10.amqp091.client.connection_base import DEFAULT_PREFETCH, ConnectionBase
from trio_amqp10.amqp091.client.opening import ChannelOpening
from trio_amqp10.amqp091.events import ContentAborted, Redirected

from .channel import ALL_RIGHTS, Channel, Transaction
from .errors import RedirectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from trio_amqp10.amqp091.events import Event
    from trio_amqp10.amqp_10_3.spec import AccessRequest

    from .channel import Right

__all__ = ["Connection"]


class Connection(ConnectionBase[Channel]):
    """One connection; made by ``open_connection``.

    Attributes:
        engine, pump: of the transport that there is now, or was last.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: brings it back; None without ``reconnect``.
        topology: what was declared on it.
        channels: those that are not closed.
        loss: why it was lost last; None if it never was.
        access: the last request for a ticket with ``active`` access, by which what was declared is declared again; None if
            there was none.
    """

    access: AccessRequest | None = None

    def open_channel(
        self,
        *,
        prefetch: int | None = DEFAULT_PREFETCH,
        prefetch_octets: int = 0,
        realm: str | None = "/data",
        exclusive: bool = False,
        rights: Collection[Right] = ALL_RIGHTS,
    ) -> ChannelOpening[Channel]:
        """Open a channel, with an access ticket: ``async with connection.open_channel() as channel`` (10.3, channel.open).

        Args:
            prefetch: unsettled deliveries under way for each of its consumers, 1 to 65535; None for no limit.
            prefetch_octets: octets of unsettled deliveries under way for all of them together; 0 for no limit.
            realm: what the ticket is for; None for no ticket, where the server needs none.
            exclusive: no other channel is to have a ticket of the realm.
            rights: what the ticket permits; see ``Channel.request_access``. The server may still refuse each method.

        Raises (on entering):
            LocalProtocolError: as many channels as were agreed are open, or an argument is out of its range.
            ChannelClosedError: there is no such realm (402).
            ConnectionClosedError: the user may not have this ticket, or the realm is in exclusive use (403); or the connection is
                gone.
            trio.ClosedResourceError: the connection was closed here.
        """
        access: dict[str, Any] = {"realm": realm, "exclusive": exclusive, "rights": rights}
        return ChannelOpening(lambda: Channel(self, prefetch, prefetch_octets=prefetch_octets, **access))

    def open_transaction(
        self,
        *,
        prefetch: int | None = DEFAULT_PREFETCH,
        prefetch_octets: int = 0,
        realm: str | None = "/data",
        exclusive: bool = False,
        rights: Collection[Right] = ALL_RIGHTS,
    ) -> ChannelOpening[Transaction]:
        """Open a channel with transactions (10.3, tx.select): leaving commits, or rolls back after an exception.

        Args and Raises (on entering): as ``open_channel``.
        """
        access: dict[str, Any] = {"realm": realm, "exclusive": exclusive, "rights": rights}
        return ChannelOpening(lambda: Transaction(self, prefetch, prefetch_octets=prefetch_octets, **access))

    def declaring_channel(self) -> Channel:
        """As of ``ConnectionBase``: with a ticket that permits to declare, unless the program does without tickets."""
        access = self.access
        realm = None if access is None else access.realm
        return Channel(
            self, None, prefetch_octets=0, realm=realm, exclusive=False, rights=("passive", "active")
        )

    # -- what the engine reports ------------------------------------------------------------

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
