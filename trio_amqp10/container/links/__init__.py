"""Links of AMQP 1.0 as inlets and outlets of nodes: the thin adapter between ``peer/`` and nodes.

No task for a link and none for a delivery: an inlet or outlet is a receiver or sender whose
``wake``, which the connection calls when something came for it, calls its node at once; a watch
hangs on each delivery that went out, and is woken with its outcome. So a message that comes in for
somebody with credit is on its way out before the next octets are read.

What nodes raise stops here: it is logged, and the link is detached with ``amqp:internal-error``.
"""
