"""AMQP 1.0 in the container: its messages as content of nodes, and its filters.

The links themselves are in ``container/links``.
"""
