"""``amqp10 migrate``: take definitions and messages of one broker to another.

``plan`` is what would be done, ``differences`` what has no counterpart; ``container_end`` and ``rabbitmq_end`` are the two kinds of
brokers; ``from_container`` and ``from_rabbitmq`` copy the messages of a queue, each exactly once; ``command`` does all in order.
"""
