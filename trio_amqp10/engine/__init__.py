"""AMQP 1.0, sans-IO: connection, session and link endpoints, and layers below."""
