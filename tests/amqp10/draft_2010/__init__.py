"""The draft of AMQP 1.0 of May 2010."""
