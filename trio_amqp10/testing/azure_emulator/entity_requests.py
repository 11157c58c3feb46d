"""EntityManagement: the requests to an entity's ``$management``.

============================================  =================  ====================================================
operation (``com.microsoft:...``)             right              effect
============================================  =================  ====================================================
``peek-message``                              receive            shows messages, whatever their state
``renew-lock``                                receive            restarts the time of locks
``receive-by-sequence-number``                receive            returns deferred messages
``update-disposition``                        receive            settles by lock token
``schedule-message``                          send               stores messages to be active at a later time
``cancel-scheduled-message``                  send               deletes scheduled messages
``renew-session-lock``                        receive            restarts the time of a session's lock
``get-session-state``, ``set-session-state``  receive            reads or stores octets for a session
``get-message-sessions``                      receive            lists the sessions with messages or a state
``add-rule``, ``remove-rule``                 receive            changes which messages of its topic a subscription has
``enumerate-rules``                           receive            lists the rules of a subscription
============================================  =================  ====================================================

The reply has a ``statusCode`` like those of HTTP, and an ``errorCondition`` unless the status is 200.

Knows entities; knows no links.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode
from trio_amqp10.amqp10.wire.values import Array, Int, Timestamp
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

from .constants import ARGUMENT_ERROR, MANAGEMENT
from .entity import Entity
from .request_response import Fields, RequestResponseNode
from .stored_message import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp10.server.connection import Amqp10Connection
    from trio_amqp10.broker.rights.access import Action
    from trio_amqp10.container.handlers import Post

    from .entity_messages import EntityMessages
    from .message_locks import MessageLock

_PREFIX: Final = "com.microsoft:"
_MOST: Final = 1000
"""The most messages of a reply, and the most items of a request."""
_OCTETS: Final = 1024 * 1024
"""The octets of messages after which a reply has no further message."""

_FIELDS: Final = Fields("statusCode", "statusDescription", "errorCondition")


class Managed(Protocol):
    """A queue, a subscription or a topic."""

    messages: EntityMessages
    address: str
    accepts_senders: bool

    def check(self, record: StoredMessage) -> None:
        """Raise ``RefusedError`` if the entity cannot hold the message."""
        ...

    def receive(self, record: StoredMessage) -> int:
        """Store a message, and return its sequence number."""
        ...

    def sweep(self) -> None:
        """End locks and messages whose time is over."""
        ...


class EntityManagement(RequestResponseNode):
    """The node for requests about one entity.

    Args:
        entity: the entity.
        post: sends a reply to a node.
        on_change: called when the next deadline may have changed.
    """

    def __init__(self, entity: Managed, post: Post, on_change: Callable[[], object]) -> None:
        super().__init__(entity.address + MANAGEMENT, post, _FIELDS)
        self._managed = entity
        self._messages = entity.messages
        self._on_change = on_change
        self._operations: dict[str, tuple[Action, Callable[[Mapping[Any, Any]], Any]]] = {}
        if entity.accepts_senders:
            self._operations |= {
                "schedule-message": ("send", self._schedule),
                "cancel-scheduled-message": ("send", self._cancel),
            }
        if isinstance(entity, Entity):
            self._entity = entity
            self._operations |= {
                "peek-message": ("receive", self._peek),
                "renew-lock": ("receive", self._renew),
                "receive-by-sequence-number": ("receive", self._receive),
                "update-disposition": ("receive", self._update),
            }
            if entity.rules is not None:
                self._rules = entity.rules
                self._operations |= {
                    "add-rule": ("receive", self._add_rule),
                    "remove-rule": ("receive", self._remove_rule),
                    "enumerate-rules": ("receive", self._show_rules),
                }
            if entity.options.requires_session:
                self._operations |= {
                    "renew-session-lock": ("receive", self._renew_session),
                    "get-session-state": ("receive", self._get_state),
                    "set-session-state": ("receive", self._set_state),
                    "get-message-sessions": ("receive", self._get_sessions),
                }

    async def _operate(self, request: Message, peer: Amqp10Connection) -> Any:
        asked: Any = request.application_properties.get("operation")
        name = str(asked)
        found = self._operations.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None
        if found is None:
            raise RefusedError(
                Condition.NOT_IMPLEMENTED, f"no operation {asked!r} at {self._managed.address!r}"
            )
        action, operation = found
        if not any(claim.permits(action, self.address) for claim in peer.guard.claims):
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS,
                f"no token permits to {action} at {self._managed.address!r}: put a token first",
            )
        body: Any = request.body
        if not isinstance(body, dict):
            raise RefusedError(ARGUMENT_ERROR, f"the body is {type(body).__name__}: expected a map")
        self._managed.sweep()
        try:
            return operation(cast("Mapping[Any, Any]", body))
        finally:
            self._on_change()

    # -- scheduled messages -----------------------------------------------------------------

    def _schedule(self, asked: Mapping[Any, Any]) -> Any:
        records: list[StoredMessage] = []
        for each in _items(asked, "messages", dict):
            payload = each.get("message")
            if not isinstance(payload, bytes):
                raise RefusedError(
                    ARGUMENT_ERROR,
                    f"message is {type(payload).__name__}: expected the octets of an encoded message",
                )
            record = StoredMessage(Message.from_payload(payload))
            if record.due is None:
                raise RefusedError(ARGUMENT_ERROR, "a scheduled message needs x-opt-scheduled-enqueue-time")
            self._managed.check(record)
            records.append(record)
        numbers = [self._managed.receive(record) for record in records]
        return {"sequence-numbers": Array(numbers, "long")}

    def _cancel(self, asked: Mapping[Any, Any]) -> Any:
        self._messages.cancel(_items(asked, "sequence-numbers", int))
        return {}

    # -- stored messages --------------------------------------------------------------------

    def _peek(self, asked: Mapping[Any, Any]) -> Any:
        count = min(_number(asked, "message-count"), _MOST)
        shown: list[Any] = []
        octets = 0
        for held in self._messages.peek(_number(asked, "from-sequence-number"), _session(asked)):
            payload = held.render()
            octets += len(payload)
            if len(shown) >= count or (shown and octets > _OCTETS):
                break
            shown.append({"message": payload})
        return {"messages": shown} if shown else None

    def _receive(self, asked: Mapping[Any, Any]) -> Any:
        locking = asked.get("receiver-settle-mode") == ReceiverSettleMode.SECOND
        numbers, session = _items(asked, "sequence-numbers", int), None
        if self._entity.options.requires_session:
            session = _named(asked)
            self._entity.sessions.check_locked(session)  # The locks of its messages end with this lock.
        found = self._messages.defer_out(numbers, locking=locking, session=session)
        messages: list[Any] = []
        for held in found:
            each: dict[str, Any] = {"message": held.render(tagged=False)}
            if held.lock is not None:
                each["lock-token"] = held.lock.token
            messages.append(each)
        return {"messages": messages}

    def _locks(self, asked: Mapping[Any, Any]) -> list[MessageLock]:
        return [self._messages.find(token) for token in _items(asked, "lock-tokens", uuid.UUID)]

    def _renew(self, asked: Mapping[Any, Any]) -> Any:
        locks = self._locks(asked)
        for lock in locks:
            self._messages.renew(lock)
        return {"expirations": Array([Timestamp(lock.wall or 0) for lock in locks], "timestamp")}

    def _update(self, asked: Mapping[Any, Any]) -> Any:
        status = str(asked.get("disposition-status"))
        changes: Any = asked.get("properties-to-modify")
        properties: dict[Any, Any] = changes if changes.__class__ is dict else {}
        reason, description = asked.get("deadletter-reason"), asked.get("deadletter-description")
        messages = self._messages
        settle: dict[str, Callable[[MessageLock], None]] = {
            "completed": messages.complete,
            "abandoned": lambda lock: messages.abandon(lock, properties),
            "defered": lambda lock: messages.defer(lock, properties),
            "suspended": lambda lock: messages.bury(lock, reason, description, properties),
        }
        if status not in settle:
            raise RefusedError(
                ARGUMENT_ERROR, f"disposition-status {status!r}: expected one of {', '.join(settle)}"
            )
        for lock in self._locks(asked):
            settle[status](lock)
        return {}

    # -- sessions ---------------------------------------------------------------------------

    def _renew_session(self, asked: Mapping[Any, Any]) -> Any:
        lock = self._entity.sessions.renew(_named(asked))
        return {"expiration": Timestamp(lock.wall)}

    def _get_state(self, asked: Mapping[Any, Any]) -> Any:
        return {"session-state": self._entity.sessions.states.get(_named(asked), (None, 0))[0]}

    def _set_state(self, asked: Mapping[Any, Any]) -> Any:
        state: Any = asked.get("session-state")
        if not isinstance(state, bytes | None):
            raise RefusedError(
                ARGUMENT_ERROR, f"session-state is {type(state).__name__}: expected octets or null"
            )
        self._entity.sessions.keep(_named(asked), state)
        return {}

    def _get_sessions(self, asked: Mapping[Any, Any]) -> Any:
        """List the sessions with messages or a state, or with a newer state.

        With ``last-updated-time``, only the sessions whose state is newer than that time.
        """
        states = self._entity.sessions.states
        since: Any = asked.get("last-updated-time")
        if isinstance(since, Timestamp) and since < _FAR:
            names = [name for name, (_, when) in states.items() if when > since]
        else:
            found = dict.fromkeys(held.record.session for held in self._messages.peek(0, None))
            found |= dict.fromkeys(name for name, (state, _) in states.items() if state is not None)
            names = [name for name in found if name is not None]
        skip = _number(asked, "skip")
        page = names[skip : skip + min(_number(asked, "top"), _MOST)]
        return {"skip": Int(skip), "sessions-ids": Array(page, "string")} if page else None

    # -- rules ------------------------------------------------------------------------------

    def _add_rule(self, asked: Mapping[Any, Any]) -> Any:
        description: Any = asked.get("rule-description")
        if description.__class__ is not dict:
            raise RefusedError(
                ARGUMENT_ERROR, f"rule-description is {type(description).__name__}: expected a map"
            )
        self._rules.add(_text(asked, "rule-name"), description)
        return {}

    def _remove_rule(self, asked: Mapping[Any, Any]) -> Any:
        self._rules.remove(_text(asked, "rule-name"))
        return {}

    def _show_rules(self, asked: Mapping[Any, Any]) -> Any:
        page = self._rules.describe(_number(asked, "skip"), min(_number(asked, "top"), _MOST))
        return {"rules": page} if page else None


_FAR: Final = 253_402_300_800_000 - 86_400_000
"""The first time that means "no time": the last day of the year 9999."""


def _items(asked: Mapping[Any, Any], name: str, kind: type) -> list[Any]:
    value: Any = asked.get(name)
    if value.__class__ not in (Array, list):
        raise RefusedError(ARGUMENT_ERROR, f"{name} must be an array or a list")
    items: list[Any] = value
    if not items or len(items) > _MOST or not all(isinstance(item, kind) for item in items):
        raise RefusedError(ARGUMENT_ERROR, f"{name}: expected 1 to {_MOST} values of type {kind.__name__}")
    return items


def _number(asked: Mapping[Any, Any], name: str) -> int:
    value: Any = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise RefusedError(ARGUMENT_ERROR, f"{name}={value!r}: expected a number of at least 0")
    return int(value)


def _text(asked: Mapping[Any, Any], name: str) -> str:
    value: Any = asked.get(name)
    if not isinstance(value, str):
        raise RefusedError(ARGUMENT_ERROR, f"{name}={value!r}: expected a string")
    return value


def _session(asked: Mapping[Any, Any]) -> str | None:
    value: Any = asked.get("session-id")
    return value if isinstance(value, str) else None


def _named(asked: Mapping[Any, Any]) -> str:
    return _text(asked, "session-id")
