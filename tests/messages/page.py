"""The page of error messages, ``docs/error-messages.rst``, by situation.

The texts come from the sources. ``groups.toml`` has the situations, and ``notes.toml`` cause and remedy of a message. Errors are: a message
without a group, a message that has neither a remedy nor a note, and a note that fits no message.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.places import ROOT

from .collect import messages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .collect import Message

PAGE: Final = ROOT / "docs/error-messages.rst"
_GROUPS: Final = Path(__file__).with_name("groups.toml")
_NOTES: Final = Path(__file__).with_name("notes.toml")
_SAYS_IT: Final = re.compile(
    r": |;|expected|must|\bneeds?\b|not \.\.\.|is not an? |\btakes?\b|\bas in\b|^Give "
)
"""A message with a clause that gives the reason, or what is right."""
_PACKAGE: Final = "trio_amqp10/"

_SHOWN_AS: Final = {
    "BadParameter": "command line",
    "CommandError": "command line",
    "Error": "sent to the peer",
    "FaultError": "answer of the emulator",
    "MalformedError": "login",
    "Misfit": "LocalProtocolError, RemoteProtocolError",
    "ReplyError": "RemoteProtocolError",
    "UsageError": "command line",
    "reason": "end of another message",
    "_FaultError": "answer of $management",
}
"""Where a reader finds messages whose class has no public name."""

_HEAD: Final = """\
Error messages
==============

.. Made by ``python -m tests.messages`` of the sources and of ``tests/messages/groups.toml``: not to be edited.

This page has the error messages of the library and its commands, by the situation in which they appear. Those that users meet most have a section, with the cause
and what to do. In the tables, a message that states what is right has no more text; the others have a note. Texts that a peer sends, or that are put together of
several parts, such as the hints of the commands, are not all here.

``...`` stands for a name, a value, a number or a reason. The project's tests raise each message that has a section of its own.
:doc:`reference/errors` has the tree of exceptions.

.. container:: filter-tables

   To find a message in the tables below, paste it here, with its names and values.
"""


@dataclass(slots=True)
class Group:
    """A situation, and the messages of it."""

    title: str
    text: str
    patterns: list[str]
    first: bool
    general: bool
    """Whether the text of the group has cause and remedy of all its messages."""
    entries: list[dict[str, str]]
    found: dict[str, set[str]] = field(default_factory=dict)
    """The kinds of each text."""

    def fits(self, message: Message) -> bool:
        """Whether one of the patterns is for this message."""
        for pattern in self.patterns:
            kind, _, place = pattern.rpartition("@")
            path = (
                message.path.removeprefix(_PACKAGE)
                if message.path.startswith(_PACKAGE)
                else f"../{message.path}"
            )
            if fnmatchcase(path, place) and fnmatchcase(message.kind, kind or "*"):
                return True
        return False


class Groups:
    """The situations, with all messages.

    Raises:
        ValueError: a message has no group or says neither itself nor by a note what to do, or a note fits no message.
    """

    def __init__(self, found: Iterable[Message], data: dict[str, Any], notes: dict[str, str]) -> None:
        self.groups = [
            Group(
                each["title"],
                each["text"].strip(),
                each["messages"],
                each.get("first", False),
                each.get("general", False),
                each.get("entry", []),
            )
            for each in data["group"]
        ]
        self._notes = {re.compile(re.escape(like).replace(r"\*", ".*")): text for like, text in notes.items()}
        in_turn = sorted(self.groups, key=lambda group: not group.first)
        for message in found:
            group = next((group for group in in_turn if group.fits(message)), None)
            if group is None:
                raise ValueError(
                    f"{message.path}:{message.line}: {message.shown!r} has no group: add a pattern to groups.toml"
                )
            group.found.setdefault(message.shown, set()).add(_SHOWN_AS.get(message.kind, message.kind))
        self.notes = self._noted()

    def _noted(self) -> dict[tuple[str, str], str]:
        """The notes of messages, by title of the group and text."""
        noted: dict[tuple[str, str], str] = {}
        bare: list[str] = []
        used: set[re.Pattern[str]] = set()
        for group in self.groups:
            for text in sorted(group.found):
                fitting = [like for like in self._notes if like.fullmatch(text)]
                like = max(fitting, key=lambda like: len(like.pattern), default=None)
                if group.general or _SAYS_IT.search(text):
                    continue
                if like is None:
                    bare.append(f"{group.title}: {text!r}")
                else:
                    used.add(like)
                    noted[group.title, text] = self._notes[like]
        if bare:
            raise ValueError("add a note to notes.toml, or what to do to the message:\n" + "\n".join(bare))
        if lost := [like.pattern for like in self._notes if like not in used]:
            raise ValueError("no message for these notes of notes.toml:\n" + "\n".join(lost))
        return noted

    def page(self) -> str:
        """Return the text of the page."""
        parts = [_HEAD]
        for group in self.groups:
            parts.append(f"\n{_titled(group.title, '-')}\n{group.text}\n")
            parts += [_entry(each) for each in group.entries]
            if group.found:
                parts.append(self._table(group))
        return "\n".join(parts)

    def _table(self, group: Group) -> str:
        rows = [
            ".. list-table::",
            "   :header-rows: 1",
            "   :widths: 70 30",
            "",
            "   * - message",
            "     - error",
        ]
        for text in sorted(group.found, key=_sort_key):
            rows.append(f"   * - {_literal(text)}")
            if note := self.notes.get((group.title, text)):
                rows += ["", f"       {note}"]
            rows.append(f"     - {', '.join(sorted(group.found[text], key=str.lower))}")
        return "\n".join(rows) + "\n"


def text_of() -> str:
    """Return the page as it must be."""
    return Groups(messages(), tomllib.loads(_GROUPS.read_text()), tomllib.loads(_NOTES.read_text())).page()


def _titled(title: str, mark: str) -> str:
    return f"{title}\n{mark * len(title)}\n"


def _entry(entry: dict[str, str]) -> str:
    quoted = f".. code-block:: text\n\n   {entry['kind']}: {entry['message']}"
    return f"\n{_titled(entry['title'], '~')}\n{quoted}\n\n{entry['text'].strip()}\n"


def _sort_key(text: str) -> tuple[str, str]:
    return re.sub(r"[^a-z0-9 ]", "", text.lower()).strip(), text


def _literal(text: str) -> str:
    """Return the text as code, also where a backtick begins or ends it."""
    if text.startswith("`") or text.endswith("`"):
        return ":literal:`" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"
    return f"``{text}``"
