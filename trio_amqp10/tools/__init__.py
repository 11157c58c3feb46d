"""Programs that use the library: the ``amqp10`` command and the trace decoder."""
