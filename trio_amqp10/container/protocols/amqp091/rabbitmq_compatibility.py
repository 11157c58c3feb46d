"""What servers of 0-9-1 do one way or the other."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Habits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What a server does one way or the other.

    Attributes:
        like_rabbitmq: do what clients expect of a server that calls itself RabbitMQ: ``basic.qos`` of consumers does not reach
            those that run, and messages of AMQP 1.0 are translated as RabbitMQ does it: one whose body is a text is delivered
            as encoded sections, and one that does not say whether it is durable is.
        no_local: obey the bit ``no-local`` of ``basic.consume``; RabbitMQ ignores it.
    """

    like_rabbitmq: bool = False
    no_local: bool = False
