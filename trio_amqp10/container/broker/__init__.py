"""Exchanges, queues and bindings, as the brokers of AMQP 0-9-1 have them, over the nodes of a container.

Knows no dialect: names, plain Python values and nodes.
"""
