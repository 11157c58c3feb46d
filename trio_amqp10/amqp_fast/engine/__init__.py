"""The sans-IO engine of AMQP/Fast (RFC 006) for clients and servers."""
