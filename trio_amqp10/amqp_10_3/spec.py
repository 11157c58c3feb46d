"""Declarations of the methods of AMQ Protocol 10.3, in the order of the wire.

The class reference of 10.3 defines the numbers of all classes and methods (105-271), the sender of each method, and its
answers; it mentions arguments only in passing. So each argument has a label: ``C`` with the line of the class reference that
names it, or ``asl`` if it was reconstructed from the class files of OpenAMQ of spring 2006, which have version 10.3. Types and
order are ``asl`` throughout. The class reference confirms the counts: a method that "carries content" has two or more
arguments. The grammar defines which methods carry a content; for file.return, stream.return, tunnel and test, where it does
not, ``asl`` does.

A method of the classes file and stream that is a subclass has the arguments of its base.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from trio_amqp10.amqp091.wire.methods import (
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
from trio_amqp10.core.endpoint_role import EndpointRole

CLIENT: Final = EndpointRole.CLIENT
SERVER: Final = EndpointRole.SERVER
BOTH: Final = EndpointRole.BOTH

table_type = table
"""The type ``table``, for classes that have an argument of this name."""

# -- connection (10) ------------------------------------------------------------


@method(10, 10, "connection.start", sender=SERVER, synchronous=True)
class ConnectionStart(Method):
    version_major: octet = 10  # C 322
    version_minor: octet = 3  # C 322
    server_properties: table = field(default_factory=dict)  # asl
    mechanisms: longstr = b"PLAIN"  # C 323
    locales: longstr = b"en_US"  # C 336


@method(10, 20, "connection.start-ok", sender=CLIENT, answers=(ConnectionStart,))
class ConnectionStartOk(Method):
    client_properties: table = field(default_factory=dict)  # asl
    mechanism: shortstr = "PLAIN"  # C 340
    response: longstr = b""  # asl
    locale: shortstr = "en_US"  # C 300


@method(10, 30, "connection.secure", sender=SERVER, synchronous=True)
class ConnectionSecure(Method):
    challenge: longstr = b""  # C 352


@method(10, 40, "connection.secure-ok", sender=CLIENT, answers=(ConnectionSecure,))
class ConnectionSecureOk(Method):
    response: longstr = b""  # C 360


@method(10, 50, "connection.tune", sender=SERVER, synchronous=True)
class ConnectionTune(Method):
    channel_max: short = 0  # asl
    frame_max: long = 0  # asl
    heartbeat: short = 0  # asl


@method(10, 60, "connection.tune-ok", sender=CLIENT, answers=(ConnectionTune,))
class ConnectionTuneOk(Method):
    channel_max: short = 0  # asl
    frame_max: long = 0  # asl
    heartbeat: short = 0  # asl


@method(10, 70, "connection.open", sender=CLIENT, synchronous=True)
class ConnectionOpen(Method):
    virtual_host: shortstr = "/"  # C 390
    capabilities: shortstr = ""  # C 414
    insist: bit = False  # C 402


@method(10, 80, "connection.open-ok", sender=SERVER, answers=(ConnectionOpen,))
class ConnectionOpenOk(Method):
    known_hosts: shortstr = ""  # asl


@method(10, 90, "connection.redirect", sender=SERVER, answers=(ConnectionOpen,))
class ConnectionRedirect(Method):
    host: shortstr = ""  # C 422
    known_hosts: shortstr = ""  # C 423


@method(10, 100, "connection.close", sender=BOTH, synchronous=True)
class ConnectionClose(Method):
    reply_code: short = 200  # C 633
    reply_text: shortstr = ""  # asl
    class_id: short = 0  # C 429
    method_id: short = 0  # C 429


@method(10, 110, "connection.close-ok", sender=BOTH, answers=(ConnectionClose,))
class ConnectionCloseOk(Method): ...


# -- channel (20) ------------------------------------------------------------


@method(20, 10, "channel.open", sender=CLIENT, synchronous=True)
class ChannelOpen(Method):
    prefetch_max: long = 0  # C 516-518
    out_of_band: shortstr = ""  # asl


@method(20, 20, "channel.open-ok", sender=SERVER, answers=(ChannelOpen,))
class ChannelOpenOk(Method): ...


@method(20, 30, "channel.flow", sender=BOTH, synchronous=True)
class ChannelFlow(Method):
    active: bit = True  # C 542


@method(20, 40, "channel.flow-ok", sender=BOTH, answers=(ChannelFlow,))
class ChannelFlowOk(Method):
    active: bit = True  # asl


@method(20, 50, "channel.alert", sender=SERVER)
class ChannelAlert(Method):
    reply_code: short = 0  # asl
    reply_text: shortstr = ""  # asl
    details: table = field(default_factory=dict)  # asl


@method(20, 60, "channel.close", sender=BOTH, synchronous=True)
class ChannelClose(Method):
    reply_code: short = 200  # C 686
    reply_text: shortstr = ""  # asl
    class_id: short = 0  # C 575
    method_id: short = 0  # C 575


@method(20, 70, "channel.close-ok", sender=BOTH, answers=(ChannelClose,))
class ChannelCloseOk(Method): ...


# -- access (30) ------------------------------------------------------------


@method(30, 10, "access.request", sender=CLIENT, synchronous=True)
class AccessRequest(Method):
    realm: shortstr = "/data"  # C 631
    exclusive: bit = False  # asl
    passive: bit = False  # C 685
    active: bit = False  # C 685
    write: bit = False  # asl
    read: bit = False  # C 855


@method(30, 20, "access.request-ok", sender=SERVER, answers=(AccessRequest,))
class AccessRequestOk(Method):
    ticket: short = 0  # C 642


# -- exchange (40) ------------------------------------------------------------


@method(40, 10, "exchange.declare", sender=CLIENT, synchronous=True)
class ExchangeDeclare(Method):
    ticket: short = 0  # C 685
    exchange: shortstr = ""  # C 686
    type: shortstr = "direct"  # C 687
    passive: bit = False  # C 689
    durable: bit = False  # C 691
    auto_delete: bit = False  # C 697
    internal: bit = False  # C 820
    arguments: table = field(default_factory=dict)  # asl


@method(40, 20, "exchange.declare-ok", sender=SERVER, answers=(ExchangeDeclare,))
class ExchangeDeclareOk(Method): ...


@method(40, 30, "exchange.delete", sender=CLIENT, synchronous=True)
class ExchangeDelete(Method):
    ticket: short = 0  # asl
    exchange: shortstr = ""  # C 710
    if_unused: bit = False  # asl


@method(40, 40, "exchange.delete-ok", sender=SERVER, answers=(ExchangeDelete,))
class ExchangeDeleteOk(Method): ...


# -- queue (50) ------------------------------------------------------------


@method(50, 10, "queue.declare", sender=CLIENT, synchronous=True)
class QueueDeclare(Method):
    ticket: short = 0  # asl
    queue: shortstr = ""  # C 770
    passive: bit = False  # C 773
    durable: bit = False  # C 779
    exclusive: bit = False  # C 781
    auto_delete: bit = False  # C 790
    arguments: table = field(default_factory=dict)  # asl


@method(50, 20, "queue.declare-ok", sender=SERVER, answers=(QueueDeclare,))
class QueueDeclareOk(Method):
    queue: shortstr = ""  # C 794
    message_count: long = 0  # asl
    consumer_count: long = 0  # asl


@method(50, 30, "queue.bind", sender=CLIENT, synchronous=True)
class QueueBind(Method):
    ticket: short = 0  # asl
    queue: shortstr = ""  # C 814
    exchange: shortstr = ""  # C 816
    routing_key: shortstr = ""  # asl
    arguments: table = field(default_factory=dict)  # asl


@method(50, 40, "queue.bind-ok", sender=SERVER, answers=(QueueBind,))
class QueueBindOk(Method): ...


@method(50, 50, "queue.purge", sender=CLIENT, synchronous=True)
class QueuePurge(Method):
    ticket: short = 0  # C 855
    queue: shortstr = ""  # C 857


@method(50, 60, "queue.purge-ok", sender=SERVER, answers=(QueuePurge,))
class QueuePurgeOk(Method):
    message_count: long = 0  # asl


@method(50, 70, "queue.delete", sender=CLIENT, synchronous=True)
class QueueDelete(Method):
    ticket: short = 0  # asl
    queue: shortstr = ""  # C 879
    if_unused: bit = False  # C 880
    if_empty: bit = False  # asl


@method(50, 80, "queue.delete-ok", sender=SERVER, answers=(QueueDelete,))
class QueueDeleteOk(Method):
    message_count: long = 0  # asl


# -- basic (60) ------------------------------------------------------------


@method(60, 10, "basic.consume", sender=CLIENT, synchronous=True)
class BasicConsume(Method):
    ticket: short = 0  # C 972
    queue: shortstr = ""  # C 963
    consumer_tag: shortstr = ""  # C 973
    prefetch_size: long = 0  # C 974
    prefetch_count: short = 0  # C 975
    no_local: bit = False  # asl
    no_ack: bit = False  # asl
    exclusive: bit = False  # C 976


@method(60, 20, "basic.consume-ok", sender=SERVER, answers=(BasicConsume,))
class BasicConsumeOk(Method):
    consumer_tag: shortstr = ""  # C 980


@method(60, 30, "basic.cancel", sender=CLIENT, synchronous=True)
class BasicCancel(Method):
    consumer_tag: shortstr = ""  # asl


@method(60, 40, "basic.cancel-ok", sender=SERVER, answers=(BasicCancel,))
class BasicCancelOk(Method):
    consumer_tag: shortstr = ""  # asl


@method(60, 50, "basic.publish", sender=CLIENT, content=True)
class BasicPublish(Method):
    ticket: short = 0  # asl
    exchange: shortstr = ""  # C 1010
    routing_key: shortstr = ""  # asl
    mandatory: bit = False  # C 1021
    immediate: bit = False  # C 1020


@method(60, 60, "basic.return", sender=SERVER, content=True)
class BasicReturn(Method):
    reply_code: short = 200  # C 1021
    reply_text: shortstr = ""  # C 1021
    exchange: shortstr = ""  # asl
    routing_key: shortstr = ""  # asl


@method(60, 70, "basic.deliver", sender=SERVER, content=True)
class BasicDeliver(Method):
    consumer_tag: shortstr = ""  # asl
    delivery_tag: longlong = 0  # asl
    redelivered: bit = False  # asl
    exchange: shortstr = ""  # asl
    routing_key: shortstr = ""  # asl


@method(60, 80, "basic.get", sender=CLIENT, synchronous=True)
class BasicGet(Method):
    ticket: short = 0  # asl
    queue: shortstr = ""  # C 1047
    no_ack: bit = False  # C 1058


@method(60, 90, "basic.get-ok", sender=SERVER, content=True, answers=(BasicGet,))
class BasicGetOk(Method):
    delivery_tag: longlong = 0  # asl
    redelivered: bit = False  # asl
    exchange: shortstr = ""  # asl
    routing_key: shortstr = ""  # asl
    message_count: long = 0  # asl


@method(60, 100, "basic.get-empty", sender=SERVER, answers=(BasicGet,))
class BasicGetEmpty(Method):
    cluster_id: shortstr = ""  # asl


@method(60, 110, "basic.ack", sender=CLIENT)
class BasicAck(Method):
    delivery_tag: longlong = 0  # asl
    multiple: bit = False  # C 1075


@method(60, 120, "basic.reject", sender=CLIENT)
class BasicReject(Method):
    delivery_tag: longlong = 0  # asl
    requeue: bit = True  # asl


# -- file (70) ------------------------------------------------------------


@method(70, 10, "file.consume", sender=CLIENT, synchronous=True)
class FileConsume(BasicConsume):
    pass


@method(70, 20, "file.consume-ok", sender=SERVER, answers=(FileConsume,))
class FileConsumeOk(BasicConsumeOk):
    pass


@method(70, 30, "file.cancel", sender=CLIENT, synchronous=True)
class FileCancel(BasicCancel):
    pass


@method(70, 40, "file.cancel-ok", sender=SERVER, answers=(FileCancel,))
class FileCancelOk(BasicCancelOk):
    pass


@method(70, 50, "file.open", sender=BOTH, synchronous=True)
class FileOpen(Method):
    identifier: shortstr = ""  # asl
    content_size: longlong = 0  # asl


@method(70, 60, "file.open-ok", sender=BOTH, answers=(FileOpen,))
class FileOpenOk(Method):
    staged_size: longlong = 0  # C 1225


@method(70, 70, "file.stage", sender=BOTH, content=True)
class FileStage(Method): ...


@method(70, 80, "file.publish", sender=CLIENT)
class FilePublish(Method):
    ticket: short = 0  # asl
    exchange: shortstr = ""  # C 1241
    routing_key: shortstr = ""  # asl
    mandatory: bit = False  # C 1250
    immediate: bit = False  # C 1249
    identifier: shortstr = ""  # asl


@method(70, 90, "file.return", sender=SERVER, content=True)
class FileReturn(BasicReturn):
    pass


@method(70, 100, "file.deliver", sender=SERVER)
class FileDeliver(Method):
    consumer_tag: shortstr = ""  # asl
    delivery_tag: longlong = 0  # asl
    redelivered: bit = False  # asl
    exchange: shortstr = ""  # asl
    routing_key: shortstr = ""  # asl
    identifier: shortstr = ""  # asl


@method(70, 110, "file.ack", sender=CLIENT)
class FileAck(BasicAck):
    pass


@method(70, 120, "file.reject", sender=CLIENT)
class FileReject(BasicReject):
    pass


# -- stream (80) ------------------------------------------------------------


@method(80, 10, "stream.consume", sender=CLIENT, synchronous=True)
class StreamConsume(Method):
    ticket: short = 0  # C 1367
    queue: shortstr = ""  # C 1353
    consumer_tag: shortstr = ""  # C 1368
    prefetch_size: long = 0  # C 1371
    prefetch_count: short = 0  # C 1371
    consume_rate: long = 0  # C 1371
    no_local: bit = False  # asl
    exclusive: bit = False  # C 1374


@method(80, 20, "stream.consume-ok", sender=SERVER, answers=(StreamConsume,))
class StreamConsumeOk(BasicConsumeOk):
    pass


@method(80, 30, "stream.cancel", sender=CLIENT, synchronous=True)
class StreamCancel(BasicCancel):
    pass


@method(80, 40, "stream.cancel-ok", sender=SERVER, answers=(StreamCancel,))
class StreamCancelOk(BasicCancelOk):
    pass


@method(80, 50, "stream.publish", sender=CLIENT, content=True)
class StreamPublish(BasicPublish):
    pass


@method(80, 60, "stream.return", sender=SERVER, content=True)
class StreamReturn(BasicReturn):
    pass


@method(80, 70, "stream.deliver", sender=SERVER, content=True)
class StreamDeliver(Method):
    consumer_tag: shortstr = ""  # asl
    delivery_tag: longlong = 0  # asl
    exchange: shortstr = ""  # asl
    queue: shortstr = ""  # asl


# -- tx (90) ------------------------------------------------------------


@method(90, 10, "tx.select", sender=CLIENT, synchronous=True)
class TxSelect(Method): ...


@method(90, 20, "tx.select-ok", sender=SERVER, answers=(TxSelect,))
class TxSelectOk(Method): ...


@method(90, 30, "tx.commit", sender=CLIENT, synchronous=True)
class TxCommit(Method): ...


@method(90, 40, "tx.commit-ok", sender=SERVER, answers=(TxCommit,))
class TxCommitOk(Method): ...


@method(90, 50, "tx.rollback", sender=CLIENT, synchronous=True)
class TxRollback(Method): ...


@method(90, 60, "tx.rollback-ok", sender=SERVER, answers=(TxRollback,))
class TxRollbackOk(Method): ...


# -- dtx (100) ------------------------------------------------------------


@method(100, 10, "dtx.select", sender=CLIENT, synchronous=True)
class DtxSelect(Method): ...


@method(100, 20, "dtx.select-ok", sender=SERVER, answers=(DtxSelect,))
class DtxSelectOk(Method): ...


@method(100, 30, "dtx.start", sender=CLIENT, synchronous=True)
class DtxStart(Method):
    dtx_identifier: shortstr = ""  # asl


@method(100, 40, "dtx.start-ok", sender=SERVER, answers=(DtxStart,))
class DtxStartOk(Method): ...


# -- tunnel (110) ------------------------------------------------------------


@method(110, 10, "tunnel.request", sender=BOTH, content=True)
class TunnelRequest(Method):
    meta_data: table = field(default_factory=dict)  # asl


# -- test (120) ------------------------------------------------------------


@method(120, 10, "test.integer", sender=BOTH, synchronous=True)
class TestInteger(Method):
    integer_1: octet = 0  # asl
    integer_2: short = 0  # asl
    integer_3: long = 0  # asl
    integer_4: longlong = 0  # asl
    operation: octet = 1  # asl


@method(120, 20, "test.integer-ok", sender=BOTH, answers=(TestInteger,))
class TestIntegerOk(Method):
    result: longlong = 0  # asl


@method(120, 30, "test.string", sender=BOTH, synchronous=True)
class TestString(Method):
    string_1: shortstr = ""  # asl
    string_2: longstr = b""  # asl
    operation: octet = 1  # asl


@method(120, 40, "test.string-ok", sender=BOTH, answers=(TestString,))
class TestStringOk(Method):
    result: longstr = b""  # asl


@method(120, 50, "test.table", sender=BOTH, synchronous=True)
class TestTable(Method):
    table: table_type = field(default_factory=dict)  # asl
    integer_op: octet = 1  # asl
    string_op: octet = 1  # asl


@method(120, 60, "test.table-ok", sender=BOTH, answers=(TestTable,))
class TestTableOk(Method):
    integer_result: longlong = 0  # asl
    string_result: longstr = b""  # asl


@method(120, 70, "test.content", sender=BOTH, synchronous=True, content=True)
class TestContent(Method): ...


@method(120, 80, "test.content-ok", sender=BOTH, content=True, answers=(TestContent,))
class TestContentOk(Method):
    content_checksum: long = 0  # C 1712


# -- cluster (61440) ------------------------------------------------------------


@method(0xF000, 10, "cluster.hello", sender=BOTH)
class ClusterHello(Method):
    version: short = 0  # C 1744
    name: shortstr = ""  # C 1744
    vhost: shortstr = ""  # asl
    signature: long = 0  # asl


@method(0xF000, 20, "cluster.status", sender=BOTH)
class ClusterStatus(Method):
    master: bit = False  # asl
    heartbeat: short = 0  # asl
    connections: long = 0  # asl
    messages: long = 0  # asl
    allocation: long = 0  # asl
    exchanges: long = 0  # asl
    queues: long = 0  # asl
    consumers: long = 0  # asl
    bindings: long = 0  # asl
    peers: long = 0  # asl


@method(0xF000, 30, "cluster.bind", sender=BOTH)
class ClusterBind(Method):
    exchange: shortstr = ""  # C 1760
    routing_key: shortstr = ""  # asl
    arguments: table = field(default_factory=dict)  # asl


METHODS: Final = MethodTable(
    each
    for each in tuple(globals().values())
    if isinstance(each, type) and issubclass(each, Method) and each is not Method
)
"""All methods of 10.3."""
