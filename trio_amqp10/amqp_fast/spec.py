"""Declarations of the 28 commands and of the message head (RFC 006, 3.1.1).

They are in the order of the document.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from trio_amqp10.core.endpoint_role import EndpointRole

from .wire.commands import (
    Command,
    CommandTable,
    Record,
    bit,
    command,
    long,
    longstr,
    octet,
    record,
    short,
    shortstr,
    table,
)

_CLIENT = EndpointRole.CLIENT
_SERVER = EndpointRole.SERVER
_BOTH = EndpointRole.BOTH


def _table() -> Any:
    return field(default_factory=dict[str, Any])


# -- connection (3.2) -----------------------------------------------------------------------


@command(10, "connection challenge", sender=_SERVER)
class ConnectionChallenge(Command):
    """A step of the server in the login (3.2.3)."""

    version: octet = 1
    mechanisms: shortstr = ""
    challenges: table = _table()


@command(11, "connection response", sender=_CLIENT)
class ConnectionResponse(Command):
    """The client's answer to a challenge (3.2.4)."""

    mechanism: shortstr = ""
    responses: table = _table()


@command(12, "connection tune", sender=_BOTH)
class ConnectionTune(Command):
    """Limits and options of the connection (3.2.5)."""

    options: table = _table()
    dictionary: table = _table()


@command(13, "connection open", sender=_CLIENT)
class ConnectionOpen(Command):
    """The client's request for a virtual path (3.2.6)."""

    confirm_tag: short = 0
    virtual_path: shortstr = ""
    client_name: shortstr = ""
    options: table = _table()


@command(14, "connection ping", sender=_BOTH)
class ConnectionPing(Command):
    """A sign of life, with or without a request for an answer (3.2.7)."""

    respond: bit = False


@command(18, "connection reply", sender=_SERVER)
class ConnectionReply(Command):
    """The server's confirmation of a command of the connection (3.2.8)."""

    confirm_tag: short = 0
    reply_code: short = 200
    reply_text: shortstr = ""


@command(19, "connection close", sender=_BOTH)
class ConnectionClose(Command):
    """The end of the connection (3.2.9)."""

    reply_code: short = 200
    reply_text: shortstr = ""


# -- channel (3.3) --------------------------------------------------------------------------


@command(20, "channel open", sender=_CLIENT)
class ChannelOpen(Command):
    """The opening of a channel (3.3.2)."""

    channel_id: short = 0
    confirm_tag: short = 0
    transacted: bit = False
    restartable: bit = False
    options: table = _table()
    out_of_band: shortstr = ""


@command(21, "channel ack", sender=_CLIENT)
class ChannelAck(Command):
    """The acknowledgement of all messages up to a number (3.3.3)."""

    channel_id: short = 0
    confirm_tag: short = 0
    message_nbr: long = 0


@command(22, "channel commit", sender=_CLIENT)
class ChannelCommit(Command):
    """The commit of a transaction (3.3.4)."""

    channel_id: short = 0
    confirm_tag: short = 0
    options: table = _table()


@command(23, "channel rollback", sender=_CLIENT)
class ChannelRollback(Command):
    """The rollback of a transaction (3.3.5)."""

    channel_id: short = 0
    confirm_tag: short = 0
    options: table = _table()


@command(28, "channel reply", sender=_SERVER)
class ChannelReply(Command):
    """The server's confirmation of a command of a channel (3.3.6)."""

    channel_id: short = 0
    confirm_tag: short = 0
    reply_code: short = 200
    reply_text: shortstr = ""


@command(29, "channel close", sender=_BOTH)
class ChannelClose(Command):
    """The end of a channel (3.3.7)."""

    channel_id: short = 0
    reply_code: short = 200
    reply_text: shortstr = ""


# -- destinations (3.5) ---------------------------------------------------------------------


@command(30, "handle open", sender=_CLIENT)
class HandleOpen(Command):
    """The opening of a handle (3.5.2)."""

    channel_id: short = 0
    handle_id: short = 0
    service_type: short = 1
    confirm_tag: short = 0
    producer: bit = False
    consumer: bit = False
    browser: bit = False
    temporary: bit = False
    dest_name: shortstr = ""
    mime_type: shortstr = ""
    encoding: shortstr = ""
    options: table = _table()


@command(31, "handle send", sender=_CLIENT)
class HandleSend(Command):
    """A client's message (3.5.3); ``fragment_size`` octets follow the frame."""

    handle_id: short = 0
    confirm_tag: short = 0
    fragment_size: long = 0
    partial: bit = False
    out_of_band: bit = False
    recovery: bit = False
    streaming: bit = False
    dest_name: shortstr = ""


@command(32, "handle consume", sender=_CLIENT)
class HandleConsume(Command):
    """A subscription to a destination (3.5.4)."""

    handle_id: short = 0
    confirm_tag: short = 0
    prefetch: short = 1
    no_local: bit = False
    unreliable: bit = False
    dest_name: shortstr = ""
    identifier: shortstr = ""
    selector: longstr = b""
    mime_type: shortstr = ""


@command(33, "handle cancel", sender=_CLIENT)
class HandleCancel(Command):
    """The end of a durable subscription (3.5.5)."""

    handle_id: short = 0
    confirm_tag: short = 0
    dest_name: shortstr = ""
    identifier: shortstr = ""


@command(34, "handle flow", sender=_CLIENT)
class HandleFlow(Command):
    """A pause of the server's messages, or its end (3.5.6)."""

    handle_id: short = 0
    confirm_tag: short = 0
    flow_pause: bit = False


@command(35, "handle unget", sender=_CLIENT)
class HandleUnget(Command):
    """The return of a message to its queue (3.5.7)."""

    handle_id: short = 0
    confirm_tag: short = 0
    message_nbr: long = 0


@command(36, "handle query", sender=_CLIENT)
class HandleQuery(Command):
    """A request for the numbers of messages (3.5.8)."""

    handle_id: short = 0
    message_nbr: long = 0
    dest_name: shortstr = ""
    selector: longstr = b""
    mime_type: shortstr = ""


@command(37, "handle browse", sender=_CLIENT)
class HandleBrowse(Command):
    """A request for one message that stays in its destination (3.5.9)."""

    handle_id: short = 0
    confirm_tag: short = 0
    message_nbr: long = 0


@command(40, "handle created", sender=_SERVER)
class HandleCreated(Command):
    """The name of a temporary destination (3.5.10)."""

    handle_id: short = 0
    dest_name: shortstr = ""


@command(41, "handle notify", sender=_SERVER)
class HandleNotify(Command):
    """A server's message (3.5.11); ``fragment_size`` octets follow the frame."""

    handle_id: short = 0
    message_nbr: long = 0
    fragment_size: long = 0
    partial: bit = False
    out_of_band: bit = False
    recovery: bit = False
    delivered: bit = False
    redelivered: bit = False
    streaming: bit = False
    dest_name: shortstr = ""


@command(42, "handle index", sender=_SERVER)
class HandleIndex(Command):
    """The numbers of messages, as the answer to a query (3.5.12)."""

    handle_id: short = 0
    message_nbr: long = 0
    message_list: longstr = b""


@command(43, "handle prepare", sender=_BOTH)
class HandlePrepare(Command):
    """The start of a restartable transfer (3.5.13).

    ``fragment_size`` octets follow the frame.
    """

    handle_id: short = 0
    fragment_size: long = 0
    content_hash: shortstr = ""


@command(44, "handle ready", sender=_BOTH)
class HandleReady(Command):
    """The answer to a prepare: how much of the message is there (3.5.14)."""

    handle_id: short = 0
    message_size: long = 0


@command(48, "handle reply", sender=_SERVER)
class HandleReply(Command):
    """The server's confirmation of a command of a handle (3.5.15)."""

    handle_id: short = 0
    confirm_tag: short = 0
    reply_code: short = 200
    reply_text: shortstr = ""


@command(49, "handle close", sender=_BOTH)
class HandleClose(Command):
    """The end of a handle (3.5.16)."""

    handle_id: short = 0
    reply_code: short = 200
    reply_text: shortstr = ""


COMMANDS: Final = CommandTable(
    each
    for each in tuple(globals().values())
    if isinstance(each, type) and issubclass(each, Command) and each is not Command
)


# -- messages (3.4.4) -----------------------------------------------------------------------


@record("message")
class MessageHead(Record):
    """The head of a message, before its body.

    Attributes:
        body_size: octets of the body.
        persistent: whether the message must survive a crash of the server.
        priority: 0 to 9; 5 to 9 are high.
        expiration: seconds since 1970 (UTC) after which the message may be dropped; 0 for never.
        mime_type, encoding: type and encoding of the body; empty for those of the handle.
        identifier: the application's name for the message.
        headers: the application's fields.
    """

    body_size: long = 0
    persistent: bit = False
    priority: octet = 4
    expiration: long = 0
    mime_type: shortstr = ""
    encoding: shortstr = ""
    identifier: shortstr = ""
    headers: table = _table()
