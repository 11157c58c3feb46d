"""The route of dead letters through an exchange.

They have the routing keys that they were published with, unless their queue names one. A letter does not go to a queue where
it died before, unless a consumer has rejected it since: otherwise it would circulate for ever by itself. If no other queue is
left for it, it is lost.

Knows exchanges and histories; knows no form of content.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from .broker_queue import BrokerQueue
from .death_history import REASONS, is_cycle
from .exchange_route import ExchangeRoute

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.deadletters import DeadLetter
    from trio_amqp10.broker.nodes.node import Inlet, Peer
    from trio_amqp10.broker.nodes.queue import Queue


_log = logging.getLogger("trio_amqp10.container")


class DeadLetterRoute(ExchangeRoute):
    """An exchange, as the node that dead letters go to. No peer can name it."""

    def check_inlet(self, peer: Peer) -> None:
        """Permit all peers: an internal exchange takes dead letters too."""

    def on_arrivals(self, inlet: Inlet) -> None:
        publisher = self._exchange.publisher
        while not publisher.must_wait(self, inlet):
            letter = cast("DeadLetter | None", inlet.take())  # No other arrivals come here.
            if letter is None:
                return
            keys = self._keys_of(letter)
            publisher.publish(
                inlet, letter, self._exchange, keys[0], keys[1:], admits=_Admitted(letter), node=self
            )

    def lacks_room_for(self, inlet: Inlet) -> bool:
        return self._exchange.publisher.waits_for_room(inlet)

    def _keys_of(self, letter: DeadLetter) -> tuple[str, ...]:
        if self.key is not None:
            return (self.key,)
        publication = letter.publication
        return ("",) if publication is None else publication.routing_keys or ("",)


class _Admitted:
    """Tests whether a dead letter may go to a queue."""

    __slots__ = ("_letter",)

    def __init__(self, letter: DeadLetter) -> None:
        self._letter = letter

    def __call__(self, queue: Queue) -> bool:
        letter = self._letter
        name = queue.name if isinstance(queue, BrokerQueue) else queue.address
        if not is_cycle(letter.content.deaths, name, REASONS[letter.reason]):
            return True
        _log.debug("%r: a dead letter that died here before is dropped", queue)
        return False
