"""AMQP 1.0 in the container: links as inlets and outlets, messages as content.

No task for a link and none for a delivery: an inlet or outlet is the owner of an engine's link, whose
``wake``, which the connection calls when something came for it, calls its node at once; a watch
hangs on each delivery that went out, and is woken with its outcome. So a message that comes in for
a receiver with credit is on its way out before the next octets are read.

What nodes raise stops here: it is logged, and the link is detached with ``amqp:internal-error``.
"""

from trio_amqp10.container.nodes import form_registry

from .native_message import Sections, received
from .selection import read_filters

form_registry.register(0, form_registry.Form(Sections, read_filters))
form_registry.register_rest(received)
