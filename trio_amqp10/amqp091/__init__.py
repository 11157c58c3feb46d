"""AMQP 0-9-1, sans-IO: the codec and the engine, for both roles. Knows no clock, socket, trio or logger."""
