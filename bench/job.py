"""What one side of a measurement is to do: a line of JSON for a program in ``bench/sides``.

Every program takes the same job and tells the same lines, so that any library can be at either end: ``{"url": ...}`` when it listens,
``{"ready": true}`` when it could begin, and ``{"result": {...}}`` when it is done. A sender begins when it reads a line.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

Kind = Literal["bytes", "id", "full"]
"""The three messages: octets alone; with a message-id; with a header, six properties and three application-properties."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One side.

    Attributes:
        role: what it does, as the program calls it.
        url: whom to dial; None to listen on a free port of this machine.
        address: the node, or the queue of 0-9-1.
        count: messages.
        message: which of the three.
        size: octets of a body.
        durable: whether a full message is to survive a restart.
        guarantee: as the API has it.
        credit: messages that may be under way.
        outcomes: ``flush`` waits for all together, ``each`` keeps the deliveries and awaits one after the other.
        batch: messages of one transaction; 0 for none.
        links: of a sender, or a receiver, on each connection.
        connections: of a sender.
        busy: links or connections among which messages take turns; the others are idle.
        hold: a receiver attaches when it reads a line, and not before.
        core: the processor to run on; None for any.
        certfile, cafile: to listen with TLS; whom to believe.
    """

    role: str
    url: str | None = None
    address: str = "bench"
    count: int
    message: Kind = "full"
    size: int = 100
    durable: bool = True
    guarantee: str = "at-least-once"
    credit: int = 1000
    outcomes: Literal["flush", "each"] = "flush"
    batch: int = 0
    links: int = 1
    connections: int = 1
    busy: int = 1
    hold: bool = False
    core: int | None = None
    certfile: str | None = None
    cafile: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it begins when it reads a line; a receiver that is attached needs no word."""
        return self.role != "receive" or self.hold

    def to_json(self) -> str:
        """As programs read it."""
        return json.dumps(asdict(self))
