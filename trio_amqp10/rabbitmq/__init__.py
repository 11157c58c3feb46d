"""What RabbitMQ 4 is to its AMQP 1.0 clients, as far as their tests need it, in a container.

``RabbitMQ`` has queues, exchanges and bindings, which clients declare by requests to ``/management``; RabbitMQ's own
clients take it for a broker. In a test that is ``with trio_amqp10.testing.rabbitmq() as url``.
"""

from .service import RabbitMQ as RabbitMQ

__all__ = ["RabbitMQ"]
