"""Selectors of type ``text/x-amq-headers``, which match headers (RFC 006, 3.5.4).

A selector is a list of terms, separated by blanks, which must all match: ``name=value`` matches a header of that value, ``name``
a header of any value. Values are compared as text. RFC 006 leaves the form of selectors to implementations; this is the simplest form that
selects by its ``headers`` field. This module does not know messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADERS_TYPE: Final = "text/x-amq-headers"


class HeadersSelector:
    """A parsed selector.

    Args:
        octets: the selector as in a command, in UTF-8.

    Raises:
        ReplyError: 502 for the handle: the text is not UTF-8, or a term has no name.
    """

    __slots__ = ("_terms",)

    def __init__(self, octets: bytes) -> None:
        try:
            text = octets.decode()
        except UnicodeDecodeError as fault:
            raise _bad(f"not UTF-8: {fault}") from None
        terms = [term.partition("=") for term in text.split()]
        if not all(name for name, _, _ in terms):
            raise _bad(f"a term without a name in {text!r}")
        self._terms = [(name, value if sign else None) for name, sign, value in terms]

    def matches(self, headers: Mapping[str, Any]) -> bool:
        """Whether the headers match all terms of the selector."""
        return all(name in headers and value in (None, str(headers[name])) for name, value in self._terms)


def _bad(explanation: str) -> ReplyError:
    return ReplyError(ReplyCodeRfc011.SYNTAX_ERROR, f"selector: {explanation}", Level.HANDLE)
