"""Access tickets of 10.3: what a channel may do in a realm (C 600-652).

A ticket is valid on the channel that asked for it, until that is over (C 642-643). Tickets are numbered for the whole
connection, so that one of another channel is known as such: its use ends the connection with 530 (C 650-652). One that was
never given, 0 above all, and one that does not give the right in question, are refused with 403 on the channel.

``/data`` is the realm of all queues and exchanges. A realm that begins otherwise than ``/data`` or ``/admin`` ends the connection
with 403 (C 631-633); one that is not known closes the channel with 402 (C 636-637). A ticket that was asked for as exclusive is
given while no other channel has one of the realm, and then no other gets one: that ends the other's connection with 403
(C 621).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ACTIVE", "PASSIVE", "READ", "WRITE", "Realms", "Ticket", "Tickets", "rights_of"]

PASSIVE: Final = "passive"
ACTIVE: Final = "active"
WRITE: Final = "write"
READ: Final = "read"
_RIGHTS: Final = (PASSIVE, ACTIVE, WRITE, READ)
_DATA: Final = "/data"
_BEGINNINGS: Final = ("/data", "/admin")
_MOST: Final = 0xFFFF


class Ticket(NamedTuple):
    """One ticket.

    Attributes:
        realm: what it is for.
        exclusive: whether no other channel may have one of the realm.
        rights: what it permits.
    """

    realm: str
    exclusive: bool
    rights: frozenset[str]


class Realms:
    """The realms of a server, and which channels have tickets of each.

    Args:
        names: of the realms that there are.
    """

    def __init__(self, names: Iterable[str] = (_DATA,)) -> None:
        self._holders: dict[str, dict[object, bool]] = {name: {} for name in names}

    def enter(self, realm: str, channel: object, *, exclusive: bool) -> None:
        """A channel gets a ticket of a realm.

        Raises:
            ReplyError: there is no such realm, or another channel has it for itself.
        """
        if not realm.startswith(_BEGINNINGS):
            raise ReplyError(
                ReplyCode091.ACCESS_REFUSED, f"a realm begins with /data or /admin: {realm!r}", hard=True
            )
        holders = self._holders.get(realm)
        if holders is None:
            raise ReplyError(ReplyCode091.INVALID_PATH, f"no realm {realm!r}", hard=False)
        others = [alone for each, alone in holders.items() if each is not channel]
        if any(others) or (exclusive and others):
            raise ReplyError(
                ReplyCode091.ACCESS_REFUSED, f"the realm {realm!r} is in exclusive use", hard=True
            )
        holders[channel] = exclusive or holders.get(channel, False)

    def leave(self, channel: object) -> None:
        """The channel is over."""
        for holders in self._holders.values():
            holders.pop(channel, None)


class Tickets:
    """The tickets of one connection.

    Args:
        realms: of the server.
        needed: whether a ticket is looked at; otherwise any number is taken.
    """

    def __init__(self, realms: Realms, *, needed: bool) -> None:
        self._realms = realms
        self._needed = needed
        self._given: dict[int, tuple[object, Ticket]] = {}
        self._last = 0

    def request(self, channel: object, ticket: Ticket) -> int:
        """The number of a new ticket for a channel.

        Raises:
            ReplyError: as ``Realms.enter``; 506, the connection has all the tickets that there are.
        """
        if len(self._given) >= _MOST:
            raise ReplyError(ReplyCode091.RESOURCE_ERROR, "no more tickets")
        self._realms.enter(ticket.realm, channel, exclusive=ticket.exclusive)
        number = self._last
        while number in self._given or not number:
            number = number % _MOST + 1
        self._last = number
        self._given[number] = channel, ticket
        return number

    def check(self, channel: object, number: int, right: str) -> None:
        """Whether a channel may do this with a ticket.

        Raises:
            ReplyError: 530, it is another channel's; 403, there is no such ticket, or it does not permit this.
        """
        if not self._needed:
            return
        owner, ticket = self._given.get(number, (channel, None))
        if owner is not channel:
            raise ReplyError(ReplyCode091.NOT_ALLOWED, f"ticket {number} is another channel's")
        if ticket is None:
            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"no ticket {number}: send access.request first")
        if right not in ticket.rights:
            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"ticket {number} does not permit {right} access")

    def forget(self, channel: object) -> None:
        """The channel is over, and its tickets with it."""
        self._realms.leave(channel)
        for number in [each for each, (owner, _) in self._given.items() if owner is channel]:
            del self._given[number]


def rights_of(request: object) -> frozenset[str]:
    """What an access.request asks for."""
    return frozenset(right for right in _RIGHTS if getattr(request, right))
