"""The page as HTML: one file, nothing from elsewhere, and no script but its own, whatever peers wrote."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import frame, header
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.html_page import html_page
from trio_amqp10.tools.trace.page_model import PageModel

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_log import Way

VOID = {"meta", "input"}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--{data}{script}\u2028"


class Reader(HTMLParser):
    """Every element, with what is in it; each is closed in its place."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts[self.open[-1]][-1] += data

    @property
    def data(self) -> dict[str, Any]:
        """The JSON in the page."""
        found: dict[str, Any] = json.loads(self.texts["script"][0])
        return found


def page_of(*said: tuple[Way, bytes], title: str = "talk", notes: tuple[str, ...] = ()) -> Reader:
    model = PageModel()
    for entry in entries_of(Record(1, way, octets) for way, octets in said):
        model.feed(entry)
    return Reader(html_page(model, title=title, notes=notes))


def hostile_page() -> Reader:
    return page_of(
        (">", header()),
        (">", frame("open", container_id=HOSTILE)),
        (">", frame("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        (">", frame("attach", name=HOSTILE, handle=0, role=False, target=("target", {"address": HOSTILE}))),
        ("<", frame("close", error=("error", {"condition": "x", "description": HOSTILE}))),
        title=HOSTILE,
        notes=(HOSTILE,),
    )


def test_page_has_the_frames_as_data() -> None:
    page = page_of((">", header()), title="<talk>", notes=("a & b",))
    assert [row["text"] for row in page.data["rows"]] == ["header AMQP 0 1.0.0 (AMQP)"]
    assert page.data["notes"] == ["a & b"]
    assert page.texts["title"] == ["<talk>"]


def test_hostile_capture_adds_no_element_to_the_page() -> None:
    hostile, harmless = hostile_page(), page_of((">", header()))
    assert hostile.elements[2:] == harmless.elements[2:]  # behind the title's
    assert [tag for tag, _ in hostile.elements].count("script") == 2
    assert hostile.texts["title"] == [HOSTILE]
    assert hostile.texts["script"][1] == harmless.texts["script"][1]
    assert hostile.data["lanes"][2]["name"] == HOSTILE
    assert hostile.data["lanes"][2]["address"] == HOSTILE
    assert "<" not in hostile.texts["script"][0]
    assert hostile.data["notes"] == [HOSTILE]


def test_policy_permits_the_script_and_the_style_of_the_page_and_nothing_else() -> None:
    page = hostile_page()
    [policy] = [
        attributes["content"] or ""
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = {
        text: b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (page.texts["script"][1], page.texts["style"][0])
    }
    script, style = hashes.values()
    assert [part.strip() for part in policy.split(";")] == [
        "default-src 'none'",
        f"script-src 'sha256-{script}'",
        f"style-src 'sha256-{style}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_page_takes_nothing_from_elsewhere_and_has_no_script_in_attributes() -> None:
    for tag, attributes in page_of((">", header())).elements:
        assert not attributes.keys() & {"src", "href", "style", "action"}, tag
        assert not [name for name in attributes if name.startswith("on")], tag


def test_script_writes_text_and_never_html() -> None:
    script = page_of((">", header())).texts["script"][1]
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert word not in script
    assert len(script.splitlines()) <= 600


@given(st.text())
def test_any_text_comes_back_out_of_the_data(text: str) -> None:
    assert page_of(notes=(text,)).data["notes"] == [text]


@pytest.mark.parametrize("name", ["{policy}", "{title}", "{style}", "{script}", "{data}"])
def test_title_may_look_like_a_place_of_the_template(name: str) -> None:
    assert page_of(title=name).texts["title"] == [name]


def test_title_that_is_no_text_can_be_written_all_the_same() -> None:
    assert page_of(title="talk\udcff").texts["title"] == ["talk?"]
