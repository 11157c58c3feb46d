"""AMQP/Fast over the nodes of a container."""
