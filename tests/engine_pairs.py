"""Two engines of one wire and what lies between them: what 0-9-1, 10.3 and AMQP/Fast have in common here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from trio_amqp10.amqp091.wire.faults import ReplyError as ReplyError091
from trio_amqp10.amqp_fast.wire.faults import ReplyError as ReplyErrorFast

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.core.endpoint_role import EndpointRole


class _Engine(Protocol):
    role: EndpointRole

    def has_output(self) -> bool: ...
    def data_to_send(self) -> bytes | None: ...
    def receive_data(self, data: bytes, now: float, /) -> object: ...
    def next_event(self) -> Any: ...


E = TypeVar("E", bound=_Engine)


def octets_of(engine: Any) -> bytes | None:
    """What an engine has to send; it must not have said before that there is nothing."""
    may_have = engine.has_output()
    octets: bytes | None = engine.data_to_send()
    assert may_have or octets == b""
    return octets


def refusal(call: Callable[..., object], *args: object) -> ReplyError091 | ReplyErrorFast | None:
    """What a call refuses; None if it goes well. Any other exception is a failure of the test."""
    try:
        call(*args)
    except (ReplyError091, ReplyErrorFast) as fault:
        return fault
    return None


def events_of(engine: Any) -> list[Any]:
    found = []
    while (event := engine.next_event()) is not None:
        found.append(event)
    return found


def arrivals_of(channel: Any) -> list[Any]:
    """All that has arrived; a fault after it closes the channel, as a server does."""
    found: list[Any] = []
    try:
        while (arrival := channel.next_arrival()) is not None:
            found.append(arrival)
    except ReplyError091 as fault:
        channel.close(fault.code, fault.reply_text, fault.class_id, fault.method_id)
    return found


class EnginePair(ABC, Generic[E]):
    """A client and a server; ``run`` carries octets until neither has any, and decides what is asked.

    Args:
        client: one end.
        server: the other.
        chunk: octets that arrive at once; 0 for all.

    Attributes:
        now: the time that both are told.
        events: what each has told, by its role.
    """

    def __init__(self, client: E, server: E, chunk: int) -> None:
        self.client = client
        self.server = server
        self.chunk = chunk
        self.now = 0.0
        self.events: dict[str, list[Any]] = {"client": [], "server": []}

    @abstractmethod
    def decide(self, event: Any) -> None:
        """Answer what an engine leaves to its user: logins, opens."""

    def run(self) -> None:
        while True:
            moved = self._carry(self.client, self.server) | self._carry(self.server, self.client)
            for engine in (self.client, self.server):
                for event in events_of(engine):
                    moved = True
                    self.events[engine.role.value].append(event)
                    self.decide(event)
            if not moved:
                return

    def _carry(self, source: E, target: E) -> bool:
        data = octets_of(source)
        if not data:
            return False
        step = self.chunk or len(data)
        for start in range(0, len(data), step):
            target.receive_data(data[start : start + step], self.now)
        return True
