"""Forms: which number stands for which form of content, and what reads it.

A protocol registers what it brings when it is imported; one that is not always needed is imported when the first of its
octets are to be read (``register_later``). Stores write the numbers, so they never change:

=========  ======================================================================================
0          AMQP 1.0: sections (3.2)
positive   an AMQP 1.0 message of this message-format (2.8.11): up to 255 a later version of the form 0; above,
           octets that say nothing to us
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

__all__ = [
    "Form",
    "Selection",
    "Wants",
    "content_of",
    "forget",
    "register",
    "register_later",
    "register_rest",
    "selection_of",
]

_log = logging.getLogger("trio_amqp10.container")

Wants: TypeAlias = Callable[[Any, str | None], bool]
"""Whether a peer wants a message (a ``Content``, or a ``Message`` of AMQP 1.0), given its origin."""


class Selection(Protocol):
    """Which messages a peer wants of a node; equal for the same choice.

    Attributes:
        number: of the form whose protocol reads it again.
    """

    @property
    def number(self) -> int: ...

    def to_octets(self) -> bytes:
        """What a store keeps of it."""
        ...


class Form(NamedTuple):
    """What a protocol brings.

    Attributes:
        read: makes content of octets.
        select: makes a selection of its octets, given the container-id and the user of the peer whose it is, and says
            which messages that passes: None for all. Raises ``ValueError`` if it cannot be read. None for a
            protocol without selections.
    """

    read: Callable[[bytes], Content]
    select: Callable[[bytes, tuple[str, str | None]], tuple[Selection, Wants | None]] | None = None


_forms: Final[dict[int, Form]] = {}
_later: Final[dict[int, str]] = {}
_rest: Final[list[Callable[[int, bytes], Content]]] = []
_missed: Final[set[int]] = set()


def register(number: int, form: Form) -> None:
    """Have content of this number read so."""
    _forms[number] = form
    _missed.discard(number)


def register_later(number: int, module: str) -> None:
    """Have content of this number read by the form that this module registers; it is imported when that is first needed."""
    _later[number] = module


def forget(number: int) -> None:
    """Read content of this number as that of a form that is not known."""
    _forms.pop(number, None)


def _form_of(number: int) -> Form | None:
    form = _forms.get(number)
    if form is None and number in _later:
        import_module(_later.pop(number))
        form = _forms.get(number)
    return form


def register_rest(read: Callable[[int, bytes], Content]) -> None:
    """Have content of all other numbers read so."""
    _rest[:] = [read]


def content_of(number: int, octets: bytes) -> Content:
    """The content that these octets are in the form of this number.

    One that no protocol has registered is held as it is; the log names it once.
    """
    form = _form_of(number)
    if form is not None:
        return form.read(octets)
    if number < 0 and number not in _missed:
        _missed.add(number)
        _log.error("messages of the form %d, which nothing here can read, are held as they are", number)
    if not _rest:
        _form_of(0)  # that of AMQP 1.0 reads all others too
    return _rest[0](number, octets)


def selection_of(number: int, octets: bytes, owner: tuple[str, str | None]) -> tuple[Selection, Wants | None]:
    """The selection of a subscription that a store has, and what it passes.

    Raises:
        ValueError: it cannot be read, or nothing here reads those of this form.
    """
    form = _form_of(number)
    if form is None or form.select is None:
        raise ValueError(f"nothing here reads selections of the form {number}")
    return form.select(octets, owner)
