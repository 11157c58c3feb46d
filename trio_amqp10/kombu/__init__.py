"""A transport of kombu, so that Celery runs over AMQP 1.0.

After ``import trio_amqp10.kombu``, a URL ``amqp10://HOST:PORT`` (with TLS ``amqp10s://``) is a broker URL of kombu and Celery.
Needs the extra ``kombu``.

Each connection of kombu is one connection of this library, in the thread that ``trio_amqp10.blocking`` uses. Threads and processes are
supported as with other transports of kombu; gevent and eventlet are not.
"""

from kombu.transport import TRANSPORT_ALIASES

from .transport import SecureTransport, Transport

__all__ = ["SecureTransport", "Transport"]

TRANSPORT_ALIASES["amqp10"] = "trio_amqp10.kombu:Transport"
TRANSPORT_ALIASES["amqp10s"] = "trio_amqp10.kombu:SecureTransport"
