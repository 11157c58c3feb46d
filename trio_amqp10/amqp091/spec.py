"""The methods of AMQP 0-9-1 as declarations: a class for each method.

The arguments are in the order of the wire, and the numbers are those of the machine-readable part of the
specification. RabbitMQ's extensions are: ``connection.blocked``, ``unblocked``, ``update-secret`` and ``-ok``;
``exchange.bind``, ``unbind`` and their ``-ok``; ``basic.nack``; ``confirm.select`` and ``-ok``; a server's
``basic.cancel``. ``access.request`` belongs to 0-8, whose clients still ask for a ticket.

A caller may omit an argument with a default.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from trio_amqp10.core.endpoint_role import EndpointRole

from .wire.methods import (
    Method,
    MethodTable,
    bit,
    long,
    longlong,
    longstr,
    method,
    octet,
    short,
    shortstr,
    table,
)

CLIENT: Final = EndpointRole.CLIENT
SERVER: Final = EndpointRole.SERVER
BOTH: Final = EndpointRole.BOTH

# -- connection (10) ------------------------------------------------------------


@method(10, 10, "connection.start", sender=SERVER, synchronous=True)
class ConnectionStart(Method):
    version_major: octet = 0
    version_minor: octet = 9
    server_properties: table = field(default_factory=dict)
    mechanisms: longstr = b"PLAIN"
    locales: longstr = b"en_US"


@method(10, 11, "connection.start-ok", sender=CLIENT, answers=(ConnectionStart,))
class ConnectionStartOk(Method):
    client_properties: table = field(default_factory=dict)
    mechanism: shortstr = "PLAIN"
    response: longstr = b""
    locale: shortstr = "en_US"


@method(10, 20, "connection.secure", sender=SERVER, synchronous=True)
class ConnectionSecure(Method):
    challenge: longstr = b""


@method(10, 21, "connection.secure-ok", sender=CLIENT, answers=(ConnectionSecure,))
class ConnectionSecureOk(Method):
    response: longstr = b""


@method(10, 30, "connection.tune", sender=SERVER, synchronous=True)
class ConnectionTune(Method):
    channel_max: short = 0
    frame_max: long = 0
    heartbeat: short = 0


@method(10, 31, "connection.tune-ok", sender=CLIENT, answers=(ConnectionTune,))
class ConnectionTuneOk(Method):
    channel_max: short = 0
    frame_max: long = 0
    heartbeat: short = 0


@method(10, 40, "connection.open", sender=CLIENT, synchronous=True)
class ConnectionOpen(Method):
    virtual_host: shortstr = "/"
    reserved_1: shortstr = ""
    reserved_2: bit = False


@method(10, 41, "connection.open-ok", sender=SERVER, answers=(ConnectionOpen,))
class ConnectionOpenOk(Method):
    reserved_1: shortstr = ""


@method(10, 50, "connection.close", sender=BOTH, synchronous=True)
class ConnectionClose(Method):
    reply_code: short = 200
    reply_text: shortstr = ""
    class_id: short = 0
    method_id: short = 0


@method(10, 51, "connection.close-ok", sender=BOTH, answers=(ConnectionClose,))
class ConnectionCloseOk(Method): ...


@method(10, 60, "connection.blocked", sender=SERVER)
class ConnectionBlocked(Method):
    reason: shortstr = ""


@method(10, 61, "connection.unblocked", sender=SERVER)
class ConnectionUnblocked(Method): ...


@method(10, 70, "connection.update-secret", sender=CLIENT, synchronous=True)
class ConnectionUpdateSecret(Method):
    new_secret: longstr = b""
    reason: shortstr = ""


@method(10, 71, "connection.update-secret-ok", sender=SERVER, answers=(ConnectionUpdateSecret,))
class ConnectionUpdateSecretOk(Method): ...


# -- channel (20) ------------------------------------------------------------


@method(20, 10, "channel.open", sender=CLIENT, synchronous=True)
class ChannelOpen(Method):
    reserved_1: shortstr = ""


@method(20, 11, "channel.open-ok", sender=SERVER, answers=(ChannelOpen,))
class ChannelOpenOk(Method):
    reserved_1: longstr = b""


@method(20, 20, "channel.flow", sender=BOTH, synchronous=True)
class ChannelFlow(Method):
    active: bit = True


@method(20, 21, "channel.flow-ok", sender=BOTH, answers=(ChannelFlow,))
class ChannelFlowOk(Method):
    active: bit = True


@method(20, 40, "channel.close", sender=BOTH, synchronous=True)
class ChannelClose(Method):
    reply_code: short = 200
    reply_text: shortstr = ""
    class_id: short = 0
    method_id: short = 0


@method(20, 41, "channel.close-ok", sender=BOTH, answers=(ChannelClose,))
class ChannelCloseOk(Method): ...


# -- access (30) ------------------------------------------------------------


@method(30, 10, "access.request", sender=CLIENT, synchronous=True)
class AccessRequest(Method):
    realm: shortstr = ""
    exclusive: bit = False
    passive: bit = False
    active: bit = False
    write: bit = False
    read: bit = False


@method(30, 11, "access.request-ok", sender=SERVER, answers=(AccessRequest,))
class AccessRequestOk(Method):
    ticket: short = 1


# -- exchange (40) ------------------------------------------------------------


@method(40, 10, "exchange.declare", sender=CLIENT, synchronous=True)
class ExchangeDeclare(Method):
    reserved_1: short = 0
    exchange: shortstr = ""
    type: shortstr = "direct"
    passive: bit = False
    durable: bit = False
    auto_delete: bit = False
    internal: bit = False
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(40, 11, "exchange.declare-ok", sender=SERVER, answers=(ExchangeDeclare,))
class ExchangeDeclareOk(Method): ...


@method(40, 20, "exchange.delete", sender=CLIENT, synchronous=True)
class ExchangeDelete(Method):
    reserved_1: short = 0
    exchange: shortstr = ""
    if_unused: bit = False
    no_wait: bit = False


@method(40, 21, "exchange.delete-ok", sender=SERVER, answers=(ExchangeDelete,))
class ExchangeDeleteOk(Method): ...


@method(40, 30, "exchange.bind", sender=CLIENT, synchronous=True)
class ExchangeBind(Method):
    reserved_1: short = 0
    destination: shortstr = ""
    source: shortstr = ""
    routing_key: shortstr = ""
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(40, 31, "exchange.bind-ok", sender=SERVER, answers=(ExchangeBind,))
class ExchangeBindOk(Method): ...


@method(40, 40, "exchange.unbind", sender=CLIENT, synchronous=True)
class ExchangeUnbind(Method):
    reserved_1: short = 0
    destination: shortstr = ""
    source: shortstr = ""
    routing_key: shortstr = ""
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(40, 51, "exchange.unbind-ok", sender=SERVER, answers=(ExchangeUnbind,))
class ExchangeUnbindOk(Method): ...


# -- queue (50) ------------------------------------------------------------


@method(50, 10, "queue.declare", sender=CLIENT, synchronous=True)
class QueueDeclare(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    passive: bit = False
    durable: bit = False
    exclusive: bit = False
    auto_delete: bit = False
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(50, 11, "queue.declare-ok", sender=SERVER, answers=(QueueDeclare,))
class QueueDeclareOk(Method):
    queue: shortstr = ""
    message_count: long = 0
    consumer_count: long = 0


@method(50, 20, "queue.bind", sender=CLIENT, synchronous=True)
class QueueBind(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    exchange: shortstr = ""
    routing_key: shortstr = ""
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(50, 21, "queue.bind-ok", sender=SERVER, answers=(QueueBind,))
class QueueBindOk(Method): ...


@method(50, 30, "queue.purge", sender=CLIENT, synchronous=True)
class QueuePurge(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    no_wait: bit = False


@method(50, 31, "queue.purge-ok", sender=SERVER, answers=(QueuePurge,))
class QueuePurgeOk(Method):
    message_count: long = 0


@method(50, 40, "queue.delete", sender=CLIENT, synchronous=True)
class QueueDelete(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    if_unused: bit = False
    if_empty: bit = False
    no_wait: bit = False


@method(50, 41, "queue.delete-ok", sender=SERVER, answers=(QueueDelete,))
class QueueDeleteOk(Method):
    message_count: long = 0


@method(50, 50, "queue.unbind", sender=CLIENT, synchronous=True)
class QueueUnbind(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    exchange: shortstr = ""
    routing_key: shortstr = ""
    arguments: table = field(default_factory=dict)


@method(50, 51, "queue.unbind-ok", sender=SERVER, answers=(QueueUnbind,))
class QueueUnbindOk(Method): ...


# -- basic (60) ------------------------------------------------------------


@method(60, 10, "basic.qos", sender=CLIENT, synchronous=True)
class BasicQos(Method):
    prefetch_size: long = 0
    prefetch_count: short = 0
    global_: bit = False


@method(60, 11, "basic.qos-ok", sender=SERVER, answers=(BasicQos,))
class BasicQosOk(Method): ...


@method(60, 20, "basic.consume", sender=CLIENT, synchronous=True)
class BasicConsume(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    consumer_tag: shortstr = ""
    no_local: bit = False
    no_ack: bit = False
    exclusive: bit = False
    no_wait: bit = False
    arguments: table = field(default_factory=dict)


@method(60, 21, "basic.consume-ok", sender=SERVER, answers=(BasicConsume,))
class BasicConsumeOk(Method):
    consumer_tag: shortstr = ""


@method(60, 30, "basic.cancel", sender=BOTH, synchronous=True)
class BasicCancel(Method):
    consumer_tag: shortstr = ""
    no_wait: bit = False


@method(60, 31, "basic.cancel-ok", sender=BOTH, answers=(BasicCancel,))
class BasicCancelOk(Method):
    consumer_tag: shortstr = ""


@method(60, 40, "basic.publish", sender=CLIENT, content=True)
class BasicPublish(Method):
    reserved_1: short = 0
    exchange: shortstr = ""
    routing_key: shortstr = ""
    mandatory: bit = False
    immediate: bit = False


@method(60, 50, "basic.return", sender=SERVER, content=True)
class BasicReturn(Method):
    reply_code: short = 200
    reply_text: shortstr = ""
    exchange: shortstr = ""
    routing_key: shortstr = ""


@method(60, 60, "basic.deliver", sender=SERVER, content=True)
class BasicDeliver(Method):
    consumer_tag: shortstr = ""
    delivery_tag: longlong = 0
    redelivered: bit = False
    exchange: shortstr = ""
    routing_key: shortstr = ""


@method(60, 70, "basic.get", sender=CLIENT, synchronous=True)
class BasicGet(Method):
    reserved_1: short = 0
    queue: shortstr = ""
    no_ack: bit = False


@method(60, 71, "basic.get-ok", sender=SERVER, content=True, answers=(BasicGet,))
class BasicGetOk(Method):
    delivery_tag: longlong = 0
    redelivered: bit = False
    exchange: shortstr = ""
    routing_key: shortstr = ""
    message_count: long = 0


@method(60, 72, "basic.get-empty", sender=SERVER, answers=(BasicGet,))
class BasicGetEmpty(Method):
    reserved_1: shortstr = ""


@method(60, 80, "basic.ack", sender=BOTH)
class BasicAck(Method):
    delivery_tag: longlong = 0
    multiple: bit = False


@method(60, 90, "basic.reject", sender=CLIENT)
class BasicReject(Method):
    delivery_tag: longlong = 0
    requeue: bit = True


@method(60, 100, "basic.recover-async", sender=CLIENT)
class BasicRecoverAsync(Method):
    requeue: bit = False


@method(60, 110, "basic.recover", sender=CLIENT, synchronous=True)
class BasicRecover(Method):
    requeue: bit = False


@method(60, 111, "basic.recover-ok", sender=SERVER, answers=(BasicRecover,))
class BasicRecoverOk(Method): ...


@method(60, 120, "basic.nack", sender=BOTH)
class BasicNack(Method):
    delivery_tag: longlong = 0
    multiple: bit = False
    requeue: bit = True


# -- confirm (85) ------------------------------------------------------------


@method(85, 10, "confirm.select", sender=CLIENT, synchronous=True)
class ConfirmSelect(Method):
    no_wait: bit = False


@method(85, 11, "confirm.select-ok", sender=SERVER, answers=(ConfirmSelect,))
class ConfirmSelectOk(Method): ...


# -- tx (90) ------------------------------------------------------------


@method(90, 10, "tx.select", sender=CLIENT, synchronous=True)
class TxSelect(Method): ...


@method(90, 11, "tx.select-ok", sender=SERVER, answers=(TxSelect,))
class TxSelectOk(Method): ...


@method(90, 20, "tx.commit", sender=CLIENT, synchronous=True)
class TxCommit(Method): ...


@method(90, 21, "tx.commit-ok", sender=SERVER, answers=(TxCommit,))
class TxCommitOk(Method): ...


@method(90, 30, "tx.rollback", sender=CLIENT, synchronous=True)
class TxRollback(Method): ...


@method(90, 31, "tx.rollback-ok", sender=SERVER, answers=(TxRollback,))
class TxRollbackOk(Method): ...


METHODS: Final = MethodTable(
    each
    for each in tuple(globals().values())
    if isinstance(each, type) and issubclass(each, Method) and each is not Method
)
"""All methods of 0-9-1."""
