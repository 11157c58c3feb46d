"""Exchanges, queues and bindings of AMQP 0-9-1, built on the nodes of a container.

Knows no dialect: names, plain Python values and nodes.
"""
