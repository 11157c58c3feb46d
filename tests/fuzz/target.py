"""A target of the fuzzer: what octets are thrown at, how they are made, and what an attempt may cost."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import RemoteProtocolError, SecurityError

from .mutate import mutated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from .mutate import Framing

WHOLE: Final[Any] = {"whole": True, "steps": (150_000, 60), "memory": (2 * 1024 * 1024, 256)}
"""To fill a container, and to have a good client use it afterwards, takes 90,000 steps by itself."""


@dataclass(frozen=True)
class FuzzTarget:
    """One thing that reads octets, and good octets for it.

    Attributes:
        framing: of the octets, if they are frames.
        share: how much of the time it gets, and of the executions of its kind: see ``shares``.
        whole: an attempt plays a script against a whole container or program, and takes milliseconds.
        make: makes octets for an attempt; None to break the seeds.
        steps: lines of the library that an attempt may run, and how many more for each octet (``meter``).
        memory: octets of memory that an attempt may take, and how many more for each octet.
    """

    run: Callable[[bytes], None]
    seeds: Sequence[bytes] = ()
    framing: Framing | None = None
    share: int = 1
    whole: bool = False
    make: Callable[[Random], bytes] | None = None
    steps: tuple[int, int] = (20_000, 40)
    memory: tuple[int, int] = (256 * 1024, 64)

    def octets(self, random: Random) -> bytes:
        """Octets for the next attempt; the same random numbers give the same."""
        return mutated(random, self.seeds, self.framing) if self.make is None else self.make(random)


def attempt(target: FuzzTarget, octets: bytes) -> None:
    """Throw once. Raises whatever a target may not raise."""
    with contextlib.suppress(RemoteProtocolError, SecurityError):
        target.run(octets)
