"""AMQP 1.0 (OASIS, 2012): types, messages, engine, peers, and server."""
