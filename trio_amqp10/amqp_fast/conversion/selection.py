"""Selections of messages by a client of AMQP/Fast (RFC 006, 3.5.4).

A selector has one of two types: ``text/x-amq-headers``, or ``text/x-amq-sql``, which is the filter language that the container
offers to all clients. A selection can be stored, to survive a restart. Form -6 is registered for selections only: messages are
stored in the form of AMQP 1.0. This module does not know handles.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.filters import FilterError, Selector
from trio_amqp10.amqp_fast.engine.headers_selector import HEADERS_TYPE, HeadersSelector
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.broker.nodes.form_registry import Form, register
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .translate import to_fast

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants

NUMBER: Final = -6
SQL_TYPE: Final = "text/x-amq-sql"


@dataclass(frozen=True, slots=True)
class FastSelection:
    """A selection of messages.

    Attributes:
        selector, mime_type: as in the client's command.
        not_from: origin whose messages are skipped; None to skip none.
    """

    selector: bytes
    mime_type: str
    not_from: str | None = None

    @property
    def number(self) -> int:
        """The number of the stored form; see ``Selection``."""
        return NUMBER

    def to_octets(self) -> bytes:
        """Encode the selection for storage; see ``Selection``."""
        return json.dumps([self.selector.decode("latin-1"), self.mime_type, self.not_from]).encode()


def wants_of(selection: FastSelection) -> Wants | None:
    """Return a function that selects messages; None if all are selected.

    Raises:
        ReplyError: for the handle: 540 for an unknown type, 502 for a wrong selector.
    """
    matches = _matcher(selection.selector, selection.mime_type)
    not_from = selection.not_from
    if matches is None and not_from is None:
        return None

    def wants(message: Any, origin: str | None) -> bool:
        if not_from is not None and origin == not_from:
            return False
        return matches is None or matches(message)

    return wants


def _matcher(selector: bytes, mime_type: str) -> Callable[[Any], bool] | None:
    if not selector.strip():
        return None
    if mime_type == HEADERS_TYPE:
        headers = HeadersSelector(selector)
        return lambda content: headers.matches(to_fast(content).head.headers)
    if mime_type == SQL_TYPE:
        try:
            expression = Selector(selector.decode(), dialect="sql")
        except (FilterError, UnicodeDecodeError) as fault:
            raise _refused(ReplyCodeRfc011.SYNTAX_ERROR, f"selector: {fault}") from None
        except LocalProtocolError as fault:
            raise _refused(ReplyCodeRfc011.NOT_IMPLEMENTED, f"mime-type: {fault}") from None
        return lambda content: expression.matches(content.as_message())
    raise _refused(
        ReplyCodeRfc011.NOT_IMPLEMENTED, f"mime-type: selectors of type {mime_type!r} are not supported"
    )


def _refused(code: ReplyCodeRfc011, explanation: str) -> ReplyError:
    return ReplyError(code, explanation, Level.HANDLE)


def _read(octets: bytes) -> Content:
    raise ValueError(f"form {NUMBER} is for selections, not for messages: {len(octets)} octets")


def _select(octets: bytes, owner: tuple[str, str | None]) -> tuple[FastSelection, Wants | None]:
    _ = owner
    try:
        selector, mime_type, not_from = json.loads(octets)
        selection = FastSelection(selector.encode("latin-1"), mime_type, not_from)
        return selection, wants_of(selection)
    except (ReplyError, TypeError, AttributeError) as fault:
        raise ValueError(f"not a selection of AMQP/Fast: {fault}") from fault


register(NUMBER, Form(_read, _select))
