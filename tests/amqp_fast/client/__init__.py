"""The client of AMQP/Fast against the server over a container, in memory."""
