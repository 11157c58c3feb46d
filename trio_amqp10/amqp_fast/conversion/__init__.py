"""Conversion between messages of AMQP/Fast and of AMQP 1.0, and selections."""
