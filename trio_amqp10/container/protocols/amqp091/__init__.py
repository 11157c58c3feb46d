"""AMQP 0-9-1 over the nodes of a container."""
