"""Failed authentications by host: who guesses too often is sent away for a while (5.3.3.6).

One number for each host, the time when all its failures are forgiven, and a bound on the hosts. Only addresses
count: whoever comes by a Unix socket or in memory is a process of this machine, which permissions are for.

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

__all__ = ["PERIOD", "Failures", "HostFailures", "network_of", "place_of"]

PERIOD: Final = 300.0
"""Seconds in which a host may fail so many times as it may."""

_HOSTS: Final = 10_000
"""More are not remembered: the one whose last failure is longest ago is forgotten for a new one."""

_log: Final = logging.getLogger("trio_amqp10.listen")


class Failures:
    """What is remembered of hosts that failed to authenticate.

    Each failure is forgiven after ``PERIOD / most`` seconds, one after the other. So a host that failed ``most``
    times at once has to wait for one of them to be forgiven, and may then try once; it can guess no faster.

    Args:
        most: failures that a host may have open; None for any number.
        clock: seconds.
        hosts: how many are remembered.

    Raises:
        LocalProtocolError: ``most`` is less than 1.
    """

    __slots__ = ("_clock", "_forgiven_at", "_hosts", "_most")

    def __init__(self, most: int | None, clock: Callable[[], float], *, hosts: int = _HOSTS) -> None:
        if most is not None and most < 1:
            raise LocalProtocolError(
                f"max_failures={most} would let in nobody: at least 1, or None for no limit"
            )
        self._most = most
        self._clock = clock
        self._hosts = hosts
        self._forgiven_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, host: str | None) -> float:
        """Seconds for which ``host`` is sent away; 0.0 for one that may try.

        Args:
            host: its IP address; None for a peer without one, which may always try.
        """
        if host is None or self._most is None:
            return 0.0
        each = PERIOD / self._most
        forgiven_at = self._forgiven_at.get(network_of(host), 0.0)
        return max(0.0, forgiven_at - self._clock() - PERIOD + each)

    def add(self, host: str | None, username: str | None) -> None:
        """``host`` has failed to authenticate as ``username``. While it is to wait this makes it wait no longer."""
        shown = host or "this machine"
        who = "" if username is None else f" as {username[:64]!r}"
        _log.warning("a peer at %s failed to authenticate%s", shown, who)
        if host is None or self._most is None or self.wait(host):
            return
        network = network_of(host)
        now = self._clock()
        self._forgiven_at[network] = max(self._forgiven_at.get(network, now), now) + PERIOD / self._most
        self._forgiven_at.move_to_end(network)
        if len(self._forgiven_at) > self._hosts:
            self._forgiven_at.popitem(last=False)
        if wait := self.wait(host):
            _log.warning("who dials from %s is sent away for the next %.0f s: too many failures", shown, wait)

    def __len__(self) -> int:
        return len(self._forgiven_at)


class HostFailures:
    """A ``sasl.Tally`` for one connection, from one host."""

    __slots__ = ("_failures", "_host")

    def __init__(self, failures: Failures, host: str | None) -> None:
        self._failures = failures
        self._host = host

    def permits(self) -> bool:
        """Whether right credentials count, or the host is to wait by now."""
        return not self._failures.wait(self._host)

    def failed(self, username: str | None) -> None:
        """They were wrong."""
        self._failures.add(self._host, username)


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
