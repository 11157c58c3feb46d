"""AMQP/Fast: codec and engine, against vectors, a second reader, and each other."""
