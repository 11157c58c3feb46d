"""AMQP/Fast in the container: connections, channels and handles over its nodes; ``protocol`` serves connections.

Messages are translated to AMQP 1.0 where they come in, and back where they go out.
"""
