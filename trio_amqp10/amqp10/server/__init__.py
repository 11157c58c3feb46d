"""AMQP 1.0 in the container: links as inlets and outlets, messages as content.

Neither a link nor a delivery has a task of its own. An inlet or outlet owns an engine's link: the connection calls its
``wake`` when something arrives for the link, and ``wake`` calls the node at once. Each sent delivery has a watch, which
is woken when its outcome arrives. So an incoming message for a receiver with credit is sent before the next octets are
read.

An exception of a node is caught here: it is logged, and the link is detached with ``amqp:internal-error``.
"""

from trio_amqp10.broker.nodes import form_registry

from .native_message import Sections, received
from .selection import read_filters

form_registry.register(0, form_registry.Form(Sections, read_filters))
form_registry.register_rest(received)
