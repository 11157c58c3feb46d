"""The standard's type definitions as one table, to hold the declarations against (1.6, 2.7, 2.8, 3.2 to 3.5, 4.5, 5.3).

Extracted by a script from the standard's own machine-readable definitions, never from our declarations,
so that the two can disagree. Facts only, in a form of our own: a row of a composite is its field and
type, then ``<x>`` for requires x, ``*`` for multiple, ``!`` for mandatory, ``= value`` for a default.
"""

from __future__ import annotations

ENCODINGS = """
0x40 null       -          fixed    0
0x56 boolean    -          fixed    1
0x41 boolean    true       fixed    0
0x42 boolean    false      fixed    0
0x50 ubyte      -          fixed    1
0x60 ushort     -          fixed    2
0x70 uint       -          fixed    4
0x52 uint       smalluint  fixed    1
0x43 uint       uint0      fixed    0
0x80 ulong      -          fixed    8
0x53 ulong      smallulong fixed    1
0x44 ulong      ulong0     fixed    0
0x51 byte       -          fixed    1
0x61 short      -          fixed    2
0x71 int        -          fixed    4
0x54 int        smallint   fixed    1
0x81 long       -          fixed    8
0x55 long       smalllong  fixed    1
0x72 float      ieee-754   fixed    4
0x82 double     ieee-754   fixed    8
0x74 decimal32  ieee-754   fixed    4
0x84 decimal64  ieee-754   fixed    8
0x94 decimal128 ieee-754   fixed    16
0x73 char       utf32      fixed    4
0x83 timestamp  ms64       fixed    8
0x98 uuid       -          fixed    16
0xa0 binary     vbin8      variable 1
0xb0 binary     vbin32     variable 4
0xa1 string     str8-utf8  variable 1
0xb1 string     str32-utf8 variable 4
0xa3 symbol     sym8       variable 1
0xb3 symbol     sym32      variable 4
0x45 list       list0      fixed    0
0xc0 list       list8      compound 1
0xd0 list       list32     compound 4
0xc1 map        map8       compound 1
0xd1 map        map32      compound 4
0xe0 array      array8     array    1
0xf0 array      array32    array    4
"""

COMPOSITES = """
open | amqp:open:list | 0x10 | frame
    container-id: string !
    hostname: string
    max-frame-size: uint = 4294967295
    channel-max: ushort = 65535
    idle-time-out: milliseconds
    outgoing-locales: ietf-language-tag *
    incoming-locales: ietf-language-tag *
    offered-capabilities: symbol *
    desired-capabilities: symbol *
    properties: fields
begin | amqp:begin:list | 0x11 | frame
    remote-channel: ushort
    next-outgoing-id: transfer-number !
    incoming-window: uint !
    outgoing-window: uint !
    handle-max: handle = 4294967295
    offered-capabilities: symbol *
    desired-capabilities: symbol *
    properties: fields
attach | amqp:attach:list | 0x12 | frame
    name: string !
    handle: handle !
    role: role !
    snd-settle-mode: sender-settle-mode = mixed
    rcv-settle-mode: receiver-settle-mode = first
    source: * <source>
    target: * <target>
    unsettled: map
    incomplete-unsettled: boolean = false
    initial-delivery-count: sequence-no
    max-message-size: ulong
    offered-capabilities: symbol *
    desired-capabilities: symbol *
    properties: fields
flow | amqp:flow:list | 0x13 | frame
    next-incoming-id: transfer-number
    incoming-window: uint !
    next-outgoing-id: transfer-number !
    outgoing-window: uint !
    handle: handle
    delivery-count: sequence-no
    link-credit: uint
    available: uint
    drain: boolean = false
    echo: boolean = false
    properties: fields
transfer | amqp:transfer:list | 0x14 | frame
    handle: handle !
    delivery-id: delivery-number
    delivery-tag: delivery-tag
    message-format: message-format
    settled: boolean
    more: boolean = false
    rcv-settle-mode: receiver-settle-mode
    state: * <delivery-state>
    resume: boolean = false
    aborted: boolean = false
    batchable: boolean = false
disposition | amqp:disposition:list | 0x15 | frame
    role: role !
    first: delivery-number !
    last: delivery-number
    settled: boolean = false
    state: * <delivery-state>
    batchable: boolean = false
detach | amqp:detach:list | 0x16 | frame
    handle: handle !
    closed: boolean = false
    error: error
end | amqp:end:list | 0x17 | frame
    error: error
close | amqp:close:list | 0x18 | frame
    error: error
error | amqp:error:list | 0x1d |
    condition: symbol <error-condition> !
    description: string
    info: fields
header | amqp:header:list | 0x70 | section
    durable: boolean = false
    priority: ubyte = 4
    ttl: milliseconds
    first-acquirer: boolean = false
    delivery-count: uint = 0
properties | amqp:properties:list | 0x73 | section
    message-id: * <message-id>
    user-id: binary
    to: * <address>
    subject: string
    reply-to: * <address>
    correlation-id: * <message-id>
    content-type: symbol
    content-encoding: symbol
    absolute-expiry-time: timestamp
    creation-time: timestamp
    group-id: string
    group-sequence: sequence-no
    reply-to-group-id: string
received | amqp:received:list | 0x23 | delivery-state
    section-number: uint !
    section-offset: ulong !
accepted | amqp:accepted:list | 0x24 | delivery-state, outcome
rejected | amqp:rejected:list | 0x25 | delivery-state, outcome
    error: error
released | amqp:released:list | 0x26 | delivery-state, outcome
modified | amqp:modified:list | 0x27 | delivery-state, outcome
    delivery-failed: boolean
    undeliverable-here: boolean
    message-annotations: fields
source | amqp:source:list | 0x28 | source
    address: * <address>
    durable: terminus-durability = none
    expiry-policy: terminus-expiry-policy = session-end
    timeout: seconds = 0
    dynamic: boolean = false
    dynamic-node-properties: node-properties
    distribution-mode: symbol <distribution-mode>
    filter: filter-set
    default-outcome: * <outcome>
    outcomes: symbol *
    capabilities: symbol *
target | amqp:target:list | 0x29 | target
    address: * <address>
    durable: terminus-durability = none
    expiry-policy: terminus-expiry-policy = session-end
    timeout: seconds = 0
    dynamic: boolean = false
    dynamic-node-properties: node-properties
    capabilities: symbol *
delete-on-close | amqp:delete-on-close:list | 0x2b | lifetime-policy
delete-on-no-links | amqp:delete-on-no-links:list | 0x2c | lifetime-policy
delete-on-no-messages | amqp:delete-on-no-messages:list | 0x2d | lifetime-policy
delete-on-no-links-or-messages | amqp:delete-on-no-links-or-messages:list | 0x2e | lifetime-policy
sasl-mechanisms | amqp:sasl-mechanisms:list | 0x40 | sasl-frame
    sasl-server-mechanisms: symbol * !
sasl-init | amqp:sasl-init:list | 0x41 | sasl-frame
    mechanism: symbol !
    initial-response: binary
    hostname: string
sasl-challenge | amqp:sasl-challenge:list | 0x42 | sasl-frame
    challenge: binary !
sasl-response | amqp:sasl-response:list | 0x43 | sasl-frame
    response: binary !
sasl-outcome | amqp:sasl-outcome:list | 0x44 | sasl-frame
    code: sasl-code !
    additional-data: binary
coordinator | amqp:coordinator:list | 0x30 | target
    capabilities: symbol <txn-capability> *
declare | amqp:declare:list | 0x31 |
    global-id: * <global-tx-id>
discharge | amqp:discharge:list | 0x32 |
    txn-id: * <txn-id> !
    fail: boolean
declared | amqp:declared:list | 0x33 | delivery-state, outcome
    txn-id: * <txn-id> !
transactional-state | amqp:transactional-state:list | 0x34 | delivery-state
    txn-id: * <txn-id> !
    outcome: * <outcome>
"""

RESTRICTED = """
role | boolean |
    sender = false
    receiver = true
sender-settle-mode | ubyte |
    unsettled = 0
    settled = 1
    mixed = 2
receiver-settle-mode | ubyte |
    first = 0
    second = 1
handle | uint |
seconds | uint |
milliseconds | uint |
delivery-tag | binary |
delivery-number | sequence-no |
transfer-number | sequence-no |
sequence-no | uint |
message-format | uint |
ietf-language-tag | symbol |
fields | map |
amqp-error | symbol | error-condition
    internal-error = amqp:internal-error
    not-found = amqp:not-found
    unauthorized-access = amqp:unauthorized-access
    decode-error = amqp:decode-error
    resource-limit-exceeded = amqp:resource-limit-exceeded
    not-allowed = amqp:not-allowed
    invalid-field = amqp:invalid-field
    not-implemented = amqp:not-implemented
    resource-locked = amqp:resource-locked
    precondition-failed = amqp:precondition-failed
    resource-deleted = amqp:resource-deleted
    illegal-state = amqp:illegal-state
    frame-size-too-small = amqp:frame-size-too-small
connection-error | symbol | error-condition
    connection-forced = amqp:connection:forced
    framing-error = amqp:connection:framing-error
    redirect = amqp:connection:redirect
session-error | symbol | error-condition
    window-violation = amqp:session:window-violation
    errant-link = amqp:session:errant-link
    handle-in-use = amqp:session:handle-in-use
    unattached-handle = amqp:session:unattached-handle
link-error | symbol | error-condition
    detach-forced = amqp:link:detach-forced
    transfer-limit-exceeded = amqp:link:transfer-limit-exceeded
    message-size-exceeded = amqp:link:message-size-exceeded
    redirect = amqp:link:redirect
    stolen = amqp:link:stolen
delivery-annotations | annotations | section | amqp:delivery-annotations:map | 0x71
message-annotations | annotations | section | amqp:message-annotations:map | 0x72
application-properties | map | section | amqp:application-properties:map | 0x74
data | binary | section | amqp:data:binary | 0x75
amqp-sequence | list | section | amqp:amqp-sequence:list | 0x76
amqp-value | * | section | amqp:amqp-value:* | 0x77
footer | annotations | section | amqp:footer:map | 0x78
annotations | map |
message-id-ulong | ulong | message-id
message-id-uuid | uuid | message-id
message-id-binary | binary | message-id
message-id-string | string | message-id
address-string | string | address
terminus-durability | uint |
    none = 0
    configuration = 1
    unsettled-state = 2
terminus-expiry-policy | symbol |
    link-detach = link-detach
    session-end = session-end
    connection-close = connection-close
    never = never
std-dist-mode | symbol | distribution-mode
    move = move
    copy = copy
filter-set | map |
node-properties | fields |
sasl-code | ubyte |
    ok = 0
    auth = 1
    sys = 2
    sys-perm = 3
    sys-temp = 4
transaction-id | binary | txn-id
txn-capability | symbol | txn-capability
    local-transactions = amqp:local-transactions
    distributed-transactions = amqp:distributed-transactions
    promotable-transactions = amqp:promotable-transactions
    multi-txns-per-ssn = amqp:multi-txns-per-ssn
    multi-ssns-per-txn = amqp:multi-ssns-per-txn
transaction-error | symbol | error-condition
    unknown-id = amqp:transaction:unknown-id
    transaction-rollback = amqp:transaction:rollback
    transaction-timeout = amqp:transaction:timeout
"""

DEFINITIONS = """
PORT = 5672
SECURE-PORT = 5671
MAJOR = 1
MINOR = 0
REVISION = 0
MIN-MAX-FRAME-SIZE = 512
MESSAGE-FORMAT = 0
TLS-MAJOR = 1
TLS-MINOR = 0
TLS-REVISION = 0
SASL-MAJOR = 1
SASL-MINOR = 0
SASL-REVISION = 0
"""
