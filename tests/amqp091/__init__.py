"""AMQP 0-9-1: codec and engine, against vectors, a second reader, and each other."""
