"""An emulator of RabbitMQ 4, for tests.

``RabbitMQ`` has queues, exchanges and bindings, which clients declare by requests to ``/management``. RabbitMQ's own
clients can use it like a broker. In a test: ``with trio_amqp10.testing.rabbitmq() as url``.
"""

from .emulator import RabbitMQ as RabbitMQ

__all__ = ["RabbitMQ"]
