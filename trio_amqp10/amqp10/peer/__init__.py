"""AMQP 1.0 under trio: connections, sessions, links and deliveries."""
