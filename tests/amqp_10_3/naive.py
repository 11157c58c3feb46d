"""A second, independent reader of 10.3, as an oracle for the first.

It has its own frames and methods; the second reader of 0-9-1 reads the arguments.
"""

from __future__ import annotations

import io
import struct
from typing import Any

from tests.amqp091.naive import argument

# class: id name arguments; o s l q = 8, 16, 32, 64 bits; S L = short and long string; T = table; b = bit.
ROWS = """
10 10 connection.start major:o minor:o properties:T mechanisms:L locales:L
10 20 connection.start-ok properties:T mechanism:S response:L locale:S
10 30 connection.secure challenge:L
10 40 connection.secure-ok response:L
10 50 connection.tune channel_max:s frame_max:l heartbeat:s
10 60 connection.tune-ok channel_max:s frame_max:l heartbeat:s
10 70 connection.open virtual_host:S capabilities:S insist:b
10 80 connection.open-ok known_hosts:S
10 90 connection.redirect host:S known_hosts:S
10 100 connection.close code:s text:S class:s method:s
10 110 connection.close-ok
20 10 channel.open prefetch_max:l out_of_band:S
20 20 channel.open-ok
20 30 channel.flow active:b
20 40 channel.flow-ok active:b
20 50 channel.alert code:s text:S details:T
20 60 channel.close code:s text:S class:s method:s
20 70 channel.close-ok
30 10 access.request realm:S exclusive:b passive:b active:b write:b read:b
30 20 access.request-ok ticket:s
40 10 exchange.declare ticket:s exchange:S type:S passive:b durable:b auto_delete:b internal:b arguments:T
40 20 exchange.declare-ok
40 30 exchange.delete ticket:s exchange:S if_unused:b
40 40 exchange.delete-ok
50 10 queue.declare ticket:s queue:S passive:b durable:b exclusive:b auto_delete:b arguments:T
50 20 queue.declare-ok queue:S messages:l consumers:l
50 30 queue.bind ticket:s queue:S exchange:S routing_key:S arguments:T
50 40 queue.bind-ok
50 50 queue.purge ticket:s queue:S
50 60 queue.purge-ok messages:l
50 70 queue.delete ticket:s queue:S if_unused:b if_empty:b
50 80 queue.delete-ok messages:l
60 10 basic.consume ticket:s queue:S tag:S size:l count:s no_local:b no_ack:b exclusive:b
60 20 basic.consume-ok tag:S
60 30 basic.cancel tag:S
60 40 basic.cancel-ok tag:S
60 50 basic.publish ticket:s exchange:S routing_key:S mandatory:b immediate:b
60 60 basic.return code:s text:S exchange:S routing_key:S
60 70 basic.deliver tag:S number:q redelivered:b exchange:S routing_key:S
60 80 basic.get ticket:s queue:S no_ack:b
60 90 basic.get-ok number:q redelivered:b exchange:S routing_key:S messages:l
60 100 basic.get-empty cluster_id:S
60 110 basic.ack number:q multiple:b
60 120 basic.reject number:q requeue:b
70 10 file.consume ticket:s queue:S tag:S size:l count:s no_local:b no_ack:b exclusive:b
70 20 file.consume-ok tag:S
70 30 file.cancel tag:S
70 40 file.cancel-ok tag:S
70 50 file.open identifier:S size:q
70 60 file.open-ok staged:q
70 70 file.stage
70 80 file.publish ticket:s exchange:S routing_key:S mandatory:b immediate:b identifier:S
70 90 file.return code:s text:S exchange:S routing_key:S
70 100 file.deliver tag:S number:q redelivered:b exchange:S routing_key:S identifier:S
70 110 file.ack number:q multiple:b
70 120 file.reject number:q requeue:b
80 10 stream.consume ticket:s queue:S tag:S size:l count:s rate:l no_local:b exclusive:b
80 20 stream.consume-ok tag:S
80 30 stream.cancel tag:S
80 40 stream.cancel-ok tag:S
80 50 stream.publish ticket:s exchange:S routing_key:S mandatory:b immediate:b
80 60 stream.return code:s text:S exchange:S routing_key:S
80 70 stream.deliver tag:S number:q exchange:S queue:S
90 10 tx.select
90 20 tx.select-ok
90 30 tx.commit
90 40 tx.commit-ok
90 50 tx.rollback
90 60 tx.rollback-ok
100 10 dtx.select
100 20 dtx.select-ok
100 30 dtx.start identifier:S
100 40 dtx.start-ok
110 10 tunnel.request meta_data:T
120 10 test.integer a:o b:s c:l d:q operation:o
120 20 test.integer-ok result:q
120 30 test.string a:S b:L operation:o
120 40 test.string-ok result:L
120 50 test.table table:T integers:o strings:o
120 60 test.table-ok integer:q string:L
120 70 test.content
120 80 test.content-ok checksum:l
61440 10 cluster.hello version:s name:S vhost:S signature:l
61440 20 cluster.status master:b heartbeat:s a:l b:l c:l d:l e:l f:l g:l h:l
61440 30 cluster.bind exchange:S routing_key:S arguments:T
"""

METHODS = {
    (int(row[0]), int(row[1])): (row[2], [each.rsplit(":", 1)[1] for each in row[3:]])
    for row in map(str.split, ROWS.strip().splitlines())
}

PROPERTIES = {60: "SSTooSSSSqSSSS", 70: "SSToSSSqS", 80: "SSToq", 110: "TSSoo", 120: ""}
"""The types of the properties of each class, in the order of their flags."""


def frames(octets: bytes) -> list[tuple[int, int, bytes]]:
    """Return type, channel and payload of each frame."""
    stream = io.BytesIO(octets)
    found = []
    while stream.tell() < len(octets):
        kind, cycle, channel, size = struct.unpack(">BBHI", stream.read(8))
        assert cycle == 0
        found.append((kind, channel, stream.read(size)))
        assert stream.read(1) == b"\xce"
    return found


def method(payload: bytes) -> tuple[str, list[Any]]:
    """Return the name of a method, and its arguments.

    Strings are octets; tables are lists of pairs with letters.
    """
    stream = io.BytesIO(payload)
    name, kinds = METHODS[struct.unpack(">HH", stream.read(4))]
    found: list[Any] = []
    bits, place = 0, 8
    for kind in kinds:
        if kind == "b":
            if place == 8:
                bits, place = stream.read(1)[0], 0
            found.append(bool(bits >> place & 1))
            place += 1
        else:
            value, place = argument(stream, kind), 8
            found.append(value)
    assert not stream.read()
    return name, found


def header(payload: bytes) -> tuple[int, int, int, list[Any]]:
    """Return class, weight, size and properties of a content header.

    An absent property is None.
    """
    stream = io.BytesIO(payload)
    class_id, weight, size, flags = struct.unpack(">HHQH", stream.read(14))
    found = [
        argument(stream, kind) if flags >> 15 - n & 1 else None for n, kind in enumerate(PROPERTIES[class_id])
    ]
    assert not stream.read()
    return class_id, weight, size, found
