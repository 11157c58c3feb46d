"""Counts of failed logins by host and user, to slow down guessing (5.3.3.6).

For each user of each host, and for each host, one number is kept: the time when all its failures are forgiven. Their number
is bounded. So a program with an old password locks out only its own user, and only from its own host. Only peers with an
address are counted: a peer at a Unix socket or in memory is a process of this machine, which file permissions keep out.

Knows no SASL mechanism; the SASL layer uses it as a ``sasl.Tally``.
"""

from __future__ import annotations

import ipaddress
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

PERIOD: Final = 300.0
"""Seconds in which a user of a host may fail the allowed number of times."""

_USERS: Final = 10
"""How many times as many failures a host may have, for all users together."""
_NUMBERS: Final = 10_000
"""The most numbers kept: after that the one with the oldest failure is dropped."""
_LONGEST: Final = 256
"""Characters of a user name that are compared."""

_log: Final = logging.getLogger("trio_amqp10.listen")


class LoginFailures:
    """The failed logins of all users and hosts.

    Each failure is forgiven after ``PERIOD / most`` seconds, one after the other. So a user that failed ``most`` times at once
    from one host must wait until one failure is forgiven, and may then try once; this bounds the speed of guessing.
    For a host, whatever user names it claims, the same holds with ten times as many failures.

    Args:
        most: unforgiven failures that a user of a host may have; None for any number.
        clock: returns seconds.
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
        """Return the seconds that a host, or a user of it, must wait before a login.

        0.0 means that the peer may try now.

        Args:
            host: the peer's IP address; None for a peer without an address, which may always try.
            username: the user that the peer claims to be; None to ask for the host alone.
        """
        if host is None or self._most is None:
            return 0.0
        return max(self._wait(key) for key in _keys(host, username))

    def _each(self, key: tuple[str, str | None]) -> float:
        """Return the seconds after which one failure is forgiven."""
        assert self._most is not None
        return PERIOD / (self._most * _USERS if key[1] is None else self._most)

    def _wait(self, key: tuple[str, str | None]) -> float:
        return max(0.0, self._forgiven_at.get(key, 0.0) - self._clock() - PERIOD + self._each(key))

    def add(self, host: str | None, username: str | None) -> None:
        """Count a failed login of ``username`` from ``host``.

        A host or user that must wait already does not have to wait longer.
        """
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
                whom = "every login" if key[1] is None else f"every login as {key[1][:64]!r}"
                _log.warning(
                    "%s from %s is refused for the next %.0f s: too many failures", whom, shown, wait
                )

    def __len__(self) -> int:
        return len(self._forgiven_at)


class HostLoginFailures:
    """A ``sasl.Tally`` for one connection, from one host."""

    __slots__ = ("_failures", "_host")

    def __init__(self, failures: LoginFailures, host: str | None) -> None:
        self._failures = failures
        self._host = host

    def permits(self, username: str | None) -> bool:
        """Whether the peer may try to log in now; otherwise it must wait."""
        wait = self._failures.wait(self._host, username)
        if wait:
            who = "" if username is None else f" as {username[:64]!r}"
            _log.info(
                "refused the login of a peer at %s%s: too many failures, it must wait %.0f s",
                self._host,
                who,
                wait,
            )
        return not wait

    def failed(self, username: str | None) -> None:
        """Count a failed login."""
        self._failures.add(self._host, username)


def _keys(host: str, username: str | None) -> list[tuple[str, str | None]]:
    network = network_of(host)
    own: list[tuple[str, str | None]] = [] if username is None else [(network, username[:_LONGEST])]
    return [(network, None), *own]


def network_of(host: str) -> str:
    """Return the network that counts as one host.

    It is an IPv4 address, or the /64 network of an IPv6 address, because one subscriber is given a whole one.
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    mapped = address.ipv4_mapped
    return str(ipaddress.ip_network((address, 64), strict=False)) if mapped is None else str(mapped)


def place_of(host: str | None) -> str:
    """Return the peer's network, or "this machine" for a peer without an address."""
    return "this machine" if host is None else network_of(host)
