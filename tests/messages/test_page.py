"""The page of error messages is made from the sources as they are, with cause and remedy of each message."""

from __future__ import annotations

import re
import tomllib

import pytest

from .collect import Message
from .page import PAGE, Groups, text_of

GROUPS = tomllib.loads('[[group]]\ntitle = "Sending"\ntext = "x"\nmessages = ["LocalProtocolError@a/*"]')
FULL = Message("LocalProtocolError", ("the queue is full",), "trio_amqp10/a/b.py", 1)


def test_page_is_current() -> None:
    assert PAGE.read_text() == text_of(), "run python -m tests.messages"


def test_note_stands_below_its_message() -> None:
    page = Groups([FULL], GROUPS, {"*is full": "Wait."}).page()
    assert re.search(r"\* - ``the queue is full``\n\n {7}Wait\.\n {5}- LocalProtocolError", page)


@pytest.mark.parametrize(
    ("message", "notes", "fault"),
    [
        (Message("ValueError", FULL.text, FULL.path, 1), {}, "has no group"),
        (Message(FULL.kind, FULL.text, "trio_amqp10/c/b.py", 1), {}, "has no group"),
        (FULL, {}, "add a note"),
        (FULL, {"the queue is full": "Wait.", "*lost": "Wait."}, "no message for these notes"),
    ],
)
def test_page_is_refused(message: Message, notes: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Groups([message], GROUPS, notes)
