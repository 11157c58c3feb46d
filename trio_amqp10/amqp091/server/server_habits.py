"""Options of a 0-9-1 server for compatibility with other servers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Behaviour in which servers of 0-9-1 differ.

    Attributes:
        like_rabbitmq: behave as clients expect of a server that calls itself RabbitMQ: ``basic.qos`` does not
            affect running consumers, and messages of AMQP 1.0 are translated as by RabbitMQ: a text body is
            delivered as encoded sections, and a message without ``durable`` is persistent.
        no_local: obey the bit ``no-local`` of ``basic.consume``; RabbitMQ ignores it.
    """

    like_rabbitmq: bool = False
    no_local: bool = False
