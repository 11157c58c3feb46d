"""The sequence diagram: everything is there, escaped, in order, and no secret."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.naive.performatives import frame, header, raw_frame
from trio_amqp10.trace.frame_log import Record, entries_of
from trio_amqp10.trace.html_diagram import sequence_diagram

VOID = {"meta"}


class Checker(HTMLParser):
    """Every element is closed in its place; keeps the summaries."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.summaries: list[str] = []
        self.classes: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "summary":
            self.summaries.append("")
        if tag == "li":
            self.classes.append(dict(attrs)["class"] or "")
        assert not {name for name, _ in attrs} & {"src", "href"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "summary" in self.open and "span" not in self.open:
            self.summaries[-1] += data.strip()


def drawn(*records: Record) -> tuple[str, Checker]:
    page = sequence_diagram(entries_of(records), title="<talk>", notes=["a & b"])
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return page, checker


def test_diagram_has_an_arrow_for_each_piece() -> None:
    there = (
        header("sasl")
        + frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0xyzzy")
        + frame("open", container_id="<script>alert(1)</script>")
        + frame("attach", channel=3, name="l", handle=2, role=False, target=("target", {"address": "orders"}))
        + frame("transfer", channel=3, handle=2, delivery_id=0, delivery_tag=b"t", payload=bytes(2000))
    )
    back = (
        frame(
            "flow",
            channel=3,
            incoming_window=1,
            next_outgoing_id=0,
            outgoing_window=1,
            handle=2,
            link_credit=9,
        )
        + frame("disposition", channel=3, role=True, first=0, last=4, state=("accepted", {}))
        + frame("detach", channel=3, handle=2, error=("error", {"condition": "amqp:not-found"}))
        + raw_frame(b"\x40")
    )
    page, checker = drawn(Record(1, ">", there, 1.5), Record(1, "<", back))
    assert checker.summaries == [
        "header AMQP 3 1.0.0 (SASL)",
        "SaslInit \u00b7 mechanism PLAIN",
        "Open \u00b7 container-id <script>alert(1)</script>",
        "[3] Attach \u00b7 name l \u00b7 handle 2 \u00b7 target orders",
        "[3] Transfer \u00b7 handle 2 \u00b7 delivery-id 0 \u00b7 2000 octets",
        "[3] Flow \u00b7 handle 2 \u00b7 link-credit 9",
        "[3] Disposition \u00b7 first 0 \u00b7 last 4 \u00b7 accepted",
        "[3] Detach \u00b7 handle 2 \u00b7 amqp:not-found",
        "9 octets: 0x40 where a performative is due (2.3.2)",
    ]
    assert checker.classes == ["there"] * 5 + ["back"] * 2 + ["back bad"] * 2
    assert "<script>" not in page
    assert "xyzzy" not in page
    assert "&lt;talk&gt;" in page
    assert "<p>a &amp; b</p>" in page
    assert '<span class="when">1.500000</span>' in page
    assert "octets more" in page


def test_diagram_is_one_for_each_conversation() -> None:
    page, checker = drawn(Record(1, ">", header()), Record(2, ">", header()), Record(1, "<", header()))
    assert "<h2>Conversation 1</h2>" in page
    assert "<h2>Conversation 2</h2>" in page
    assert checker.classes == ["there", "back", "there"]
