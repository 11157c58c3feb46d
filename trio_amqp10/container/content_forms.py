"""Registers which module reads each form of message content.

Importing this module registers 0 for AMQP 1.0, -91 for AMQP 0-9-1 and -6 for AMQP/Fast. A form's module is imported
when its first content is read.
"""

from trio_amqp10.broker.nodes import form_registry

form_registry.register_later(0, "trio_amqp10.amqp10.server")
form_registry.register_later(-91, "trio_amqp10.amqp091.server.native_message")
form_registry.register_later(-6, "trio_amqp10.amqp_fast.conversion.selection")
