"""AMQP 1.0 for structured concurrency."""
