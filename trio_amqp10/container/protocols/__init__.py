"""What each protocol brings to the container: its messages and its links."""

from trio_amqp10.container.nodes import form_registry

form_registry.register_later(0, f"{__name__}.amqp10")
form_registry.register_later(-91, f"{__name__}.amqp091.native_message")
form_registry.register_later(-6, f"{__name__}.amqp_fast.selection")
