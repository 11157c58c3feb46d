"""A conversation as a sequence diagram: one page of HTML that needs nothing else.

Two lines of life, an arrow for each frame, its fields and octets behind a click. Knows no browser.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from .frame_text import describe, fields_of, hexdump, redacted
from .pieces import OtherProtocolPiece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .frame_log import Entry
    from .pieces import Piece

__all__ = ["sequence_diagram"]

_MOST_OCTETS: Final = 1024
"""Octets of a frame that are shown; the rest is counted."""

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8888; --there: #2563eb; --back: #15803d; --bad: #dc2626 }
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
section { margin-bottom: 3rem }
.ends { display: flex; justify-content: space-between; font-weight: 600 }
ol { list-style: none; margin: 0; padding: .5rem 0; border: solid var(--line); border-width: 0 2px }
li { position: relative; padding: .1rem 1rem .5rem 1rem }
summary { cursor: pointer; list-style: none; text-align: center }
summary::after { content: ""; display: block; height: 0; margin: .15rem -1rem 0; border-top: 2px solid currentColor }
.there > details > summary { color: var(--there) }
.back > details > summary { color: var(--back) }
li::after { position: absolute; font-size: .8rem; line-height: 1; top: 1.3rem }
.there::after { content: "\\25B6"; right: -.15rem; color: var(--there) }
.back::after { content: "\\25C0"; left: -.15rem; color: var(--back) }
.bad > details > summary, .bad::after { color: var(--bad) }
.when { float: left; color: GrayText; font-variant-numeric: tabular-nums }
.fields { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: .5rem 2rem }
dt { font-weight: 600 } dd { margin: 0; overflow-wrap: anywhere }
pre { overflow-x: auto; margin: .5rem 2rem; font-size: .8rem }
"""


def sequence_diagram(entries: Sequence[Entry], *, title: str, notes: Sequence[str] = ()) -> str:
    """A page with one diagram for each conversation. Secrets of the SASL layer are not on it.

    Args:
        entries: what was said.
        title: of the page.
        notes: lines to begin with.
    """
    numbers = sorted({entry.conversation for entry in entries})
    sections = "".join(
        _section(number, [e for e in entries if e.conversation == number]) for number in numbers
    )
    remarks = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{escape(title)}</h1>\n{remarks}{sections}</html>\n"
    )


def _section(number: int, entries: Sequence[Entry]) -> str:
    items = "".join(_item(entry) for entry in entries)
    return (
        f"<section>\n<h2>Conversation {number}</h2>\n"
        f'<div class="ends"><span>dials</span><span>is dialled</span></div>\n<ol>\n{items}</ol>\n</section>\n'
    )


def _item(entry: Entry) -> str:
    piece = entry.piece
    way = "there" if entry.way == ">" else "back"
    fault = " bad" if piece.fault is not None or _is_error(piece) else ""
    when = "" if entry.at is None else f'<span class="when">{entry.at:.6f}</span>'
    return (
        f'<li class="{way}{fault}"><details><summary>{when}{escape(_headline(piece))}</summary>\n'
        f"{_fields(piece)}<pre>{escape(_octets(piece))}</pre></details></li>\n"
    )


def _headline(piece: Piece) -> str:
    """What can be read at a glance: the name, the channel, and where it leads."""
    said = piece.performative
    if said is None or isinstance(piece, OtherProtocolPiece):
        return describe(piece)
    parts = [piece.name] if not piece.channel else [f"[{piece.channel}] {piece.name}"]
    for name in (
        "mechanism",
        "container_id",
        "name",
        "handle",
        "delivery_id",
        "first",
        "last",
        "link_credit",
        "code",
    ):
        value = getattr(said, name, None)
        if value is not None:
            parts.append(f"{name.replace('_', '-')} {int(value) if isinstance(value, int) else value}")
    for name in ("source", "target"):
        address = getattr(getattr(said, name, None), "address", None)
        if address is not None:
            parts.append(f"{name} {address}")
    for name in ("state", "error"):
        value = getattr(said, name, None)
        if value is not None:
            parts.append(str(getattr(value, "condition", type(value).__name__.lower())))
    if piece.payload:
        parts.append(f"{len(piece.payload)} octets")
    return " \u00b7 ".join(parts)


def _is_error(piece: Piece) -> bool:
    if isinstance(piece, OtherProtocolPiece):
        return piece.is_error
    return getattr(piece.performative, "error", None) is not None


def _fields(piece: Piece) -> str:
    if piece.performative is None:
        return ""
    rows = "".join(
        f"<dt>{escape(name.replace('_', '-'))}</dt><dd>{escape(value)}</dd>"
        for name, value in fields_of(piece.performative).items()
    )
    return f'<dl class="fields">{rows}</dl>\n'


def _octets(piece: Piece) -> str:
    octets = redacted(piece)
    lines = hexdump(octets[:_MOST_OCTETS])
    if len(octets) > _MOST_OCTETS:
        lines.append(f"and {len(octets) - _MOST_OCTETS} octets more")
    return "\n".join(lines)
