"""AMQP 1.0 in the container: its messages as content of nodes, and its filters.

The links themselves are in ``container/links``.
"""

from trio_amqp10.container.nodes import forms

from .content import Opaque, Sections
from .selection import read_filters

forms.register(0, forms.Form(Sections, read_filters))
forms.register_rest(Opaque)
