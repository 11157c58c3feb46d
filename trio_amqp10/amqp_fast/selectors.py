"""Selectors of the type ``text/x-amq-headers``: which headers a message has to have (RFC 006, 3.5.4).

Terms are separated by blanks, and all have to hold: ``name=value`` for a header of that value, ``name`` for a header of any
value. Values are compared as text. The document leaves selectors to implementations; this one is the least that its
``headers`` field asks for. Knows no message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.reply_codes import ReplyCodeRfc011

from .faults import Level, ReplyError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HEADERS_TYPE", "HeadersSelector"]

HEADERS_TYPE: Final = "text/x-amq-headers"


class HeadersSelector:
    """A selector.

    Args:
        octets: as a command has it, in UTF-8.

    Raises:
        ReplyError: 502 for the handle; it is no UTF-8, or a term has no name.
    """

    __slots__ = ("_terms",)

    def __init__(self, octets: bytes) -> None:
        try:
            text = octets.decode()
        except UnicodeDecodeError as fault:
            raise _bad(f"no UTF-8: {fault}") from None
        terms = [term.partition("=") for term in text.split()]
        if not all(name for name, _, _ in terms):
            raise _bad(f"a term without a name in {text!r}")
        self._terms = [(name, value if sign else None) for name, sign, value in terms]

    def matches(self, headers: Mapping[str, Any]) -> bool:
        """Whether these headers have what the selector asks for."""
        return all(name in headers and value in (None, str(headers[name])) for name, value in self._terms)


def _bad(explanation: str) -> ReplyError:
    return ReplyError(ReplyCodeRfc011.SYNTAX_ERROR, f"selector: {explanation}", Level.HANDLE)
