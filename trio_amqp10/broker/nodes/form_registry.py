"""The forms of content: a number for each form, and the function that reads it.

A protocol registers its form when it is imported; a protocol that is not always needed is imported when its octets are
first read (``register_later``). Stores contain the numbers, so the numbers never change:

=========  ======================================================================================
0          AMQP 1.0: sections (3.2)
positive   an AMQP 1.0 message of this message-format (2.8.11): up to 255 a later version of the form 0; above,
           octets without a known structure
negative   the forms of other protocols
=========  ======================================================================================

Knows numbers; knows no form.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from .content import Content

_log = logging.getLogger("trio_amqp10.container")

Wants: TypeAlias = Callable[[Any, str | None], bool]
"""Whether a peer wants a message, given the message and its origin.

The message is a ``Content``, or a ``Message`` of AMQP 1.0.
"""


class Selection(Protocol):
    """The messages that a peer selects from a node; equal for the same choice.

    Attributes:
        number: the form whose protocol reads it again.
    """

    @property
    def number(self) -> int: ...

    def to_octets(self) -> bytes:
        """Return the selection as octets, for a store."""
        ...


class Form(NamedTuple):
    """The functions by which a protocol reads its form.

    Attributes:
        read: makes content from octets.
        select: makes a selection from its octets, given the container-id and the user of its owner. Returns also a function
            that tests a message; None for all messages. Raises ``ValueError`` if the octets cannot be read. None for a
            protocol without selections.
    """

    read: Callable[[bytes], Content]
    select: Callable[[bytes, tuple[str, str | None]], tuple[Selection, Wants | None]] | None = None


_forms: Final[dict[int, Form]] = {}
_later: Final[dict[int, str]] = {}
_rest: Final[list[Callable[[int, bytes], Content]]] = []
_missed: Final[set[int]] = set()


def register(number: int, form: Form) -> None:
    """Register the form of this number."""
    _forms[number] = form
    _missed.discard(number)


def register_later(number: int, module: str) -> None:
    """Import ``module``, which registers the form of this number, when first needed."""
    _later[number] = module


def forget(number: int) -> None:
    """Remove the form of this number, so that its content is not readable."""
    _forms.pop(number, None)


def _form_of(number: int) -> Form | None:
    form = _forms.get(number)
    if form is None and number in _later:
        import_module(_later.pop(number))
        form = _forms.get(number)
    return form


def register_rest(read: Callable[[int, bytes], Content]) -> None:
    """Register the function that reads content of all other numbers."""
    _rest[:] = [read]


def content_of(number: int, octets: bytes) -> Content:
    """Return the content that these octets are in the form of this number.

    Content of an unknown form is held as octets; the log mentions each such form once.
    """
    form = _form_of(number)
    if form is not None:
        return form.read(octets)
    if number < 0 and number not in _missed:
        _missed.add(number)
        _log.error("no protocol here reads messages of the form %d: they are held unread", number)
    if not _rest:
        _form_of(0)  # Importing AMQP 1.0 also registers the reader for all other numbers.
    return _rest[0](number, octets)


def selection_of(number: int, octets: bytes, owner: tuple[str, str | None]) -> tuple[Selection, Wants | None]:
    """Return the selection of a stored subscription, and its test of a message.

    Raises:
        ValueError: the octets cannot be read, or no protocol here reads this form.
    """
    form = _form_of(number)
    if form is None or form.select is None:
        raise ValueError(f"no protocol here reads selections of the form {number}")
    return form.select(octets, owner)
