"""Translation between messages of 0-9-1 and of AMQP 1.0."""
