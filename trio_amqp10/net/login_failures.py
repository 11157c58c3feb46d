"""Count failed logins by host and user, and delay those who guess (5.3.3.6).

One number for each user of each host, and one for the host: the time when all its failures are forgiven; and a bound on these
numbers. So a program with an old password shuts out its own user from its own host, and nobody else. Only peers with an
address count: a peer at a Unix socket or in memory is a process of this machine, which permissions are for.

Knows nothing of mechanisms; what the SASL layer asks and tells it is ``sasl.Tally``.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PERIOD", "HostLoginFailures", "LoginFailures", "network_of", "place_of"]

PERIOD: Final = 300.0
"""Seconds in which a user of a host may fail so many times as it may."""

_USERS: Final = 10
"""How many times as often a host may fail, for all users together."""
_NUMBERS: Final = 10_000
"""More are not remembered: the one whose last failure is longest ago is forgotten for a new one."""
_LONGEST: Final = 256
"""Characters of a name by which users are told apart."""

_log: Final = logging.getLogger("trio_amqp10.listen")


class LoginFailures:
    """What is remembered of hosts from which users failed to authenticate.

    Each failure is forgiven after ``PERIOD / most`` seconds, one after the other. So a user that failed ``most``
    times at once from one host has to wait for one of them to be forgiven, and may then try once; nobody can guess faster.
    For a host, whatever names it claims, the same holds with ten times as many.

    Args:
        most: failures that a user of a host may have open; None for any number.
        clock: seconds.
        numbers: how many users and hosts are remembered.

    Raises:
        LocalProtocolError: ``most`` is less than 1.
    """

    __slots__ = ("_clock", "_forgiven_at", "_most", "_numbers")

    def __init__(self, most: int | None, clock: Callable[[], float], *, numbers: int = _NUMBERS) -> None:
        if most is not None and most < 1:
            raise LocalProtocolError(
                f"max_failures={most} would refuse every user: expected at least 1, or None for no limit"
            )
        self._most = most
        self._clock = clock
        self._numbers = numbers
        self._forgiven_at: OrderedDict[tuple[str, str | None], float] = OrderedDict()

    def wait(self, host: str | None, username: str | None = None) -> float:
        """Seconds for which nobody gets in from ``host``, or not as ``username``; 0.0 for a peer that may try.

        Args:
            host: its IP address; None for a peer without one, which may always try.
            username: the user that it claims to be; None to ask for the host alone.
        """
        if host is None or self._most is None:
            return 0.0
        return max(self._wait(key) for key in _keys(host, username))

    def _each(self, key: tuple[str, str | None]) -> float:
        """Seconds after which one failure is forgiven."""
        assert self._most is not None
        return PERIOD / (self._most * _USERS if key[1] is None else self._most)

    def _wait(self, key: tuple[str, str | None]) -> float:
        return max(0.0, self._forgiven_at.get(key, 0.0) - self._clock() - PERIOD + self._each(key))

    def add(self, host: str | None, username: str | None) -> None:
        """``host`` has failed to authenticate as ``username``. A wait that there is gets no longer."""
        shown = host or "this machine"
        who = "" if username is None else f" as {username[:64]!r}"
        _log.warning("a peer at %s failed to authenticate%s", shown, who)
        if host is None or self._most is None:
            return
        for key in _keys(host, username):
            if self._wait(key):
                continue
            now = self._clock()
            self._forgiven_at[key] = max(self._forgiven_at.get(key, now), now) + self._each(key)
            self._forgiven_at.move_to_end(key)
            if len(self._forgiven_at) > self._numbers:
                self._forgiven_at.popitem(last=False)
            if wait := self._wait(key):
                whom = "nobody gets in" if key[1] is None else f"{key[1][:64]!r} does not get in"
                _log.warning("%s from %s for the next %.0f s: too many failures", whom, shown, wait)

    def __len__(self) -> int:
        return len(self._forgiven_at)


class HostLoginFailures:
    """A ``sasl.Tally`` for one connection, from one host."""

    __slots__ = ("_failures", "_host")

    def __init__(self, failures: LoginFailures, host: str | None) -> None:
        self._failures = failures
        self._host = host

    def permits(self, username: str | None) -> bool:
        """Whether credentials count, or the peer has to wait."""
        wait = self._failures.wait(self._host, username)
        if wait:
            who = "" if username is None else f" as {username[:64]!r}"
            _log.info(
                "a peer at %s does not get in%s: it has to wait %.0f s, it failed too often",
                self._host,
                who,
                wait,
            )
        return not wait

    def failed(self, username: str | None) -> None:
        """They were wrong."""
        self._failures.add(self._host, username)


def _keys(host: str, username: str | None) -> list[tuple[str, str | None]]:
    network = network_of(host)
    own: list[tuple[str, str | None]] = [] if username is None else [(network, username[:_LONGEST])]
    return [(network, None), *own]


def network_of(host: str) -> str:
    """Who counts as one: an IPv4 address, or the 64 bits of an IPv6 address that one subscriber is given."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(ipaddress.ip_network((address, 64), strict=False)) if mapped is None else str(mapped)


def place_of(host: str | None) -> str:
    """Where a peer is, for counting and for people: its network, or this machine for one without an address."""
    return "this machine" if host is None else network_of(host)
