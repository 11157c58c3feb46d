"""Figures of a queue, at either kind of broker.

Knows numbers; knows no broker.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The figures of a queue.

    Attributes:
        ready: messages that can be received now.
        busy: messages that consumers have, or that wait for their next delivery; RabbitMQ does not show them over AMQP 1.0.
        octets: octets of all of them; 0 if the broker does not show it.
        consumers: receivers that remove messages.
    """

    ready: int
    busy: int = 0
    octets: int = 0
    consumers: int = 0
