"""What each protocol brings to the container: its messages and its links."""

from trio_amqp10.container.nodes import forms

forms.register_later(0, f"{__name__}.amqp10")
forms.register_later(-91, f"{__name__}.amqp091.content")
forms.register_later(-6, f"{__name__}.amqp_fast.selection")
