"""The page of ``amqp10 trace --html`` in a browser: what it shows, how soon, and that no peer's text runs in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import open_page
from tests.naive.performatives import frame, header
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.html_page import html_page
from trio_amqp10.tools.trace.page_model import PageModel

from .conftest import need

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser import Page

HOSTILE = "</script><script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
ROW = 22
"""Pixels of a row."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    need("chromium")
    with open_page(tmp_path_factory.mktemp("browser")) as found:
        yield found


def conversation(messages: int, *, name: str = "link") -> list[Record]:
    """Messages on a link to ``orders``, in hundreds, each hundred accepted at once; then the node is deleted."""
    there = [
        header(),
        frame("open", container_id=name),
        frame("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100),
        frame("attach", name=name, handle=0, role=False, initial_delivery_count=0, target=("target", {"address": "orders"})),
    ]  # fmt: skip
    back = [
        header(),
        frame("open", container_id="shop"),
        frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=100, outgoing_window=100),
        frame("attach", name=name, handle=0, role=True, target=("target", {"address": "orders"})),
    ]
    records = [Record(1, ">", b"".join(there), 0.0), Record(1, "<", b"".join(back), 0.001)]
    for start in range(0, messages, 100):
        grant = frame("flow", incoming_window=100, next_incoming_id=start, next_outgoing_id=0, outgoing_window=100, handle=0, delivery_count=start, link_credit=100)  # fmt: skip
        records.append(Record(1, "<", grant, 0.002 + start * 0.001))
        last = min(start + 100, messages)
        for number in range(start, last):
            tag = number.to_bytes(4, "big")
            sent = frame(
                "transfer", handle=0, delivery_id=number, delivery_tag=tag, payload=b"tea %d" % number
            )
            records.append(Record(1, ">", sent, 0.002 + number * 0.001))
        accepted = frame(
            "disposition", role=True, first=start, last=last - 1, settled=True, state=("accepted", {})
        )
        records.append(Record(1, "<", accepted, 0.002 + last * 0.001))
    deleted = {"condition": "amqp:resource-deleted", "description": name}
    records.append(
        Record(
            1, "<", frame("detach", handle=0, closed=True, error=("error", deleted)), 0.002 + messages * 0.001
        )
    )
    return records


def written(records: list[Record], path: Path, *, title: str = "talk") -> str:
    """Where the page of these records is."""
    model = PageModel()
    for entry in entries_of(records):
        model.feed(entry)
    path.write_text(html_page(model, title=title, notes=[title]), encoding="utf-8")
    return path.as_uri()


def rows(page: Page) -> list[str]:
    """The texts of the rows that are on the screen, from top to bottom."""
    found: list[str] = page.run(
        "Array.from(document.querySelectorAll('.row:not([hidden])'))"
        ".sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top)"
        ".map((row) => row.querySelector('.what').textContent)"
    )
    return found


def fill(page: Page, **fields: Any) -> None:
    """Write into the filters, as somebody who types."""
    for name, value in fields.items():
        page.run(f"document.getElementById({name!r}).value = {value!r}")
    page.run("document.getElementById('filters').dispatchEvent(new Event('input'))")
    page.drawn()


def summary(page: Page) -> str:
    found: str = page.run("document.getElementById('summary').textContent")
    return found


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_page_of_a_short_conversation_shows_its_frames(
    page: Page, tmp_path: Path, width: int, dark: bool
) -> None:
    page.go(written(conversation(1), tmp_path / "short.html"), width=width, dark=dark)
    shown = rows(page)
    assert shown[0] == "header AMQP 0 1.0.0 (AMQP)"
    assert "Transfer \u00b7 handle 0 \u00b7 delivery-id 0 \u00b7 5 octets" in shown
    assert summary(page) == "12 frames, 1 connection, 1 delivery, 1 error"
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('.row.bad:not([hidden])').length") == 1
    assert page.said == []


def test_hostile_capture_runs_no_script(page: Page, tmp_path: Path) -> None:
    page.go(written(conversation(1, name=HOSTILE), tmp_path / "hostile.html", title=HOSTILE))
    page.click("document.getElementById('next')")
    assert page.run("document.title") == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.run("document.querySelectorAll('script').length") == 2
    assert HOSTILE in page.run("document.getElementById('detail').textContent")
    assert page.said == []
    # Nor does what a mistake of ours would put there: the policy of the page permits no other script.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    page.run("(() => { const own = document.createElement('script'); own.textContent = 'document.title = 2'; document.body.append(own); })()")  # fmt: skip
    page.drawn()
    assert page.run("document.title") == HOSTILE
    assert any("Content Security Policy" in text for text in page.said)
    page.said.clear()


def test_ten_thousand_frames_are_painted_within_a_second_and_scroll(page: Page, tmp_path: Path) -> None:
    url = written(conversation(9800), tmp_path / "long.html")
    drawn: list[float] = []
    for _ in range(3):  # the machine may have had something else to do
        page.go(url)
        drawn.append(page.run("performance.getEntriesByName('frames drawn')[0].startTime"))
    assert min(drawn) < 1000, drawn
    assert summary(page).startswith("10,005 frames")
    assert page.run("document.querySelectorAll('.row').length") < 60  # only those on the screen
    page.run(f"document.getElementById('scroller').scrollTop = {5000 * ROW}")
    page.drawn()
    seen = rows(page)
    assert len(seen) > 10
    assert all("Transfer" in text or "Disposition" in text or "Flow" in text for text in seen)
    page.run("document.getElementById('scroller').scrollTop = 1e9")
    page.drawn()
    assert rows(page)[-1].startswith("Detach")


def test_filters_show_what_belongs_together(page: Page, tmp_path: Path) -> None:
    page.go(written(conversation(250), tmp_path / "some.html"))
    fill(page, delivery="123")
    assert [text.partition(" ")[0] for text in rows(page)] == ["Transfer", "Disposition"]
    fill(page, delivery="", text="tea 24")
    assert summary(page).startswith("11 of ")  # 24, and 240 to 249
    fill(page, text="", address="ORD")
    assert "Attach" in rows(page)[0]
    fill(page, address="nowhere")
    assert rows(page) == []
    fill(page, address="")
    page.click("document.getElementById('errors')")
    assert rows(page) == ["Detach \u00b7 handle 0 \u00b7 amqp:resource-deleted"]
    page.click("document.getElementById('next')")
    detail = page.run("document.getElementById('detail').textContent")
    assert "Section: 2.8.15" in detail
    assert "The node was deleted" in detail
    lane = page.run(
        "Array.from(document.getElementById('lane').options).find((one) => one.text.includes('session')).value"
    )
    page.click("document.getElementById('errors')")
    fill(page, lane=lane)
    assert summary(page).startswith("261 of 265 frames")


def test_frame_leads_to_its_delivery_and_figures_follow(page: Page, tmp_path: Path) -> None:
    page.go(written(conversation(250), tmp_path / "some.html"))
    page.click("document.querySelectorAll('.row')[12]")
    detail = page.run("document.getElementById('detail').textContent")
    assert "tag 00000003: accepted, settled" in detail
    assert "tea 3" in detail
    assert "credit of orders: 96 of 100" in page.run("document.getElementById('legend').textContent")
    page.click(
        "Array.from(document.querySelectorAll('.steps button')).find((one) => one.textContent.startsWith('settled'))"
    )
    assert page.run("document.querySelector('.row.chosen .what').textContent").startswith("Disposition")
    assert "credit of orders: 0 of 100" in page.run("document.getElementById('legend').textContent")
    assert page.said == []


def test_page_of_a_proxy_that_nobody_dialled_is_drawn(page: Page, tmp_path: Path) -> None:
    page.go(written([], tmp_path / "empty.html"))
    assert summary(page) == "0 frames, 0 connections, 0 deliveries, 0 errors"
    assert rows(page) == []
    assert page.said == []


def test_page_without_times_and_without_lanes_of_links_is_drawn(page: Page, tmp_path: Path) -> None:
    page.go(written([Record(1, ">", header())], tmp_path / "header.html"))
    assert rows(page) == ["header AMQP 0 1.0.0 (AMQP)"]
    assert (
        page.run("document.getElementById('legend').textContent") == "no credit and no window in this capture"
    )
    assert page.said == []
