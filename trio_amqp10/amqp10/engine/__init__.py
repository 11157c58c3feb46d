"""The sans-IO engine of AMQP 1.0: connections, sessions, links, and SASL."""
