"""Access tickets: the rights of a channel in a realm (C 600-652).

A ticket is valid on the channel that requested it, until the channel ends (C 642-643). Numbers of tickets are unique in a
connection, so that a ticket of another channel can be recognised: its use ends the connection with 530 (C 650-652). A number
that was never assigned (such as 0), and a ticket without the needed right, are refused with 403 on the channel.

``/data`` is the realm of all queues and exchanges. The name of a realm must begin with ``/data`` or ``/admin``, otherwise the
connection ends with 403 (C 631-633); an unknown realm closes the channel with 402 (C 636-637). An exclusive ticket is given only
while no other channel has a ticket of the realm, and excludes other tickets; a request against this ends the connection with 403
(C 621).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from collections.abc import Iterable

PASSIVE: Final = "passive"
ACTIVE: Final = "active"
WRITE: Final = "write"
READ: Final = "read"
_RIGHTS: Final = (PASSIVE, ACTIVE, WRITE, READ)
_DATA: Final = "/data"
_BEGINNINGS: Final = ("/data", "/admin")
_MOST: Final = 0xFFFF


class Ticket(NamedTuple):
    """An access ticket.

    Attributes:
        realm: the realm that it is for.
        exclusive: whether no other channel may have a ticket of the realm.
        rights: the permitted rights.
    """

    realm: str
    exclusive: bool
    rights: frozenset[str]


class Realms:
    """The realms of a server, and the channels that have tickets of each.

    Args:
        names: the names of the realms.
    """

    def __init__(self, names: Iterable[str] = (_DATA,)) -> None:
        self._holders: dict[str, dict[object, bool]] = {name: {} for name in names}

    def enter(self, realm: str, channel: object, *, exclusive: bool) -> None:
        """Record that a channel gets a ticket of a realm.

        Raises:
            ReplyError: the realm does not exist, or exclusive use prevents the ticket.
        """
        if not realm.startswith(_BEGINNINGS):
            raise ReplyError(
                ReplyCode091.ACCESS_REFUSED,
                f"a realm must begin with /data or /admin, not {realm!r}",
                hard=True,
            )
        holders = self._holders.get(realm)
        if holders is None:
            raise ReplyError(ReplyCode091.INVALID_PATH, f"there is no realm {realm!r}", hard=False)
        others = [alone for each, alone in holders.items() if each is not channel]
        if any(others) or (exclusive and others):
            raise ReplyError(
                ReplyCode091.ACCESS_REFUSED, f"the realm {realm!r} is in exclusive use", hard=True
            )
        holders[channel] = exclusive or holders.get(channel, False)

    def leave(self, channel: object) -> None:
        """Forget the tickets of a channel that has ended."""
        for holders in self._holders.values():
            holders.pop(channel, None)


class Tickets:
    """The tickets of one connection.

    Args:
        realms: the realms of the server.
        needed: whether tickets are checked; otherwise any number is accepted.
    """

    def __init__(self, realms: Realms, *, needed: bool) -> None:
        self._realms = realms
        self._needed = needed
        self._given: dict[int, tuple[object, Ticket]] = {}
        self._last = 0

    def request(self, channel: object, ticket: Ticket) -> int:
        """Assign a number to a new ticket of a channel.

        Raises:
            ReplyError: as ``Realms.enter``; 506 if all numbers are in use.
        """
        if len(self._given) >= _MOST:
            raise ReplyError(ReplyCode091.RESOURCE_ERROR, "all ticket numbers of the connection are in use")
        self._realms.enter(ticket.realm, channel, exclusive=ticket.exclusive)
        number = self._last
        while number in self._given or not number:
            number = number % _MOST + 1
        self._last = number
        self._given[number] = channel, ticket
        return number

    def check(self, channel: object, number: int, right: str) -> None:
        """Check that a channel may use a ticket for this right.

        Raises:
            ReplyError: 530: the ticket belongs to another channel; 403: it does not exist, or lacks the right.
        """
        if not self._needed:
            return
        owner, ticket = self._given.get(number, (channel, None))
        if owner is not channel:
            raise ReplyError(ReplyCode091.NOT_ALLOWED, f"ticket {number} belongs to another channel")
        if ticket is None:
            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"no ticket {number}: send access.request first")
        if right not in ticket.rights:
            raise ReplyError(ReplyCode091.ACCESS_REFUSED, f"ticket {number} does not permit {right} access")

    def forget(self, channel: object) -> None:
        """Forget the tickets of a channel that has ended."""
        self._realms.leave(channel)
        for number in [each for each, (owner, _) in self._given.items() if owner is channel]:
            del self._given[number]


def rights_of(request: object) -> frozenset[str]:
    """Return the rights that an access.request asks for."""
    return frozenset(right for right in _RIGHTS if getattr(request, right))
