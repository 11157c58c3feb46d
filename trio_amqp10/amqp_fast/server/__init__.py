"""AMQP/Fast in the container: connections, channels and handles over its nodes.

``protocol`` is the entry. Messages are converted to AMQP 1.0 when they arrive, and back when they are delivered.
"""
