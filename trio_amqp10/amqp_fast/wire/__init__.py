"""The encoding of AMQP/Fast: frames, fields and commands (RFC 006)."""
