"""What the page of a capture shows: rows, errors with their causes, lanes in order, and no secret."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame, header, raw_frame
from trio_amqp10.tools.trace import page_model
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.page_model import PageModel

if TYPE_CHECKING:
    from trio_amqp10.tools.trace.frame_log import Way


def shown(*said: tuple[Way, bytes], at: float | None = None) -> dict[str, Any]:
    model = PageModel()
    entries = entries_of(Record(1, way, octets, at) for way, octets in said)
    for entry in entries:
        model.feed(entry)
    assert len(model) == len(entries)
    return model.as_json()


def error_of(octets: bytes) -> dict[str, str]:
    """Of the one frame that this is."""
    [row] = shown(("<", octets))["rows"]
    error: dict[str, str] = row["error"]
    assert error["usually"].endswith(".")
    return error


def test_row_has_what_can_be_read_at_a_glance_and_all_fields() -> None:
    page = shown(
        (">", header("sasl")),
        (">", frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0xyzzy")),
        (">", frame("open", container_id="me")),
        (">", frame("begin", channel=3, next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        (
            ">",
            frame(
                "attach", channel=3, name="l", handle=2, role=False, target=("target", {"address": "orders"})
            ),
        ),
        (">", frame("transfer", channel=3, handle=2, delivery_id=0, delivery_tag=b"t", payload=bytes(2000))),
        ("<", frame("disposition", channel=3, role=True, first=0, last=4, state=("accepted", {}))),
        ("<", frame("detach", channel=3, handle=2, error=("error", {"condition": "amqp:not-found"}))),
        at=1.5,
    )
    assert [row["text"] for row in page["rows"]] == [
        "header AMQP 3 1.0.0 (SASL)",
        "SaslInit \u00b7 mechanism PLAIN",
        "Open \u00b7 container-id me",
        "Begin",
        "Attach \u00b7 name l \u00b7 handle 2 \u00b7 target orders",
        "Transfer \u00b7 handle 2 \u00b7 delivery-id 0 \u00b7 2000 octets",
        "Disposition \u00b7 first 0 \u00b7 last 4 \u00b7 accepted",
        "Detach \u00b7 handle 2 \u00b7 amqp:not-found",
    ]
    assert [row["way"] for row in page["rows"]] == [">"] * 6 + ["<"] * 2
    assert ["delivery-tag", "b't'"] in page["rows"][5]["fields"]
    assert {row["at"] for row in page["rows"]} == {1.5}
    assert page["rows"][5]["size"] > 2000
    assert len(b64decode(page["rows"][5]["octets"])) == 1024
    assert "xyzzy" not in str(page)
    assert b"xyzzy" not in b"".join(b64decode(row["octets"]) for row in page["rows"])
    assert page["rows"][0]["fields"] == []


def test_lanes_are_numbered_from_left_to_right() -> None:
    begin = frame("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    model = PageModel()
    attach = frame("attach", name="l", handle=0, role=False, initial_delivery_count=0)
    transfer = frame("transfer", handle=0, delivery_id=0, delivery_tag=b"\xff", settled=True)
    records = [Record(1, ">", begin), Record(2, ">", begin), Record(1, ">", attach + transfer)]
    for entry in entries_of(records):
        model.feed(entry)
    page = model.as_json()
    assert [(lane["kind"], lane["conversation"], lane["parent"]) for lane in page["lanes"]] == [
        ("connection", 1, None),
        ("session", 1, 0),
        ("link", 1, 1),
        ("connection", 2, None),
        ("session", 2, 3),
    ]
    assert [row["lane"] for row in page["rows"]] == [1, 4, 2, 2]
    [delivery] = page["deliveries"]
    assert (delivery["lane"], delivery["tag"], delivery["steps"]) == (2, "ff", [(3, "settled")])
    assert {each["lane"] for each in page["series"] if each["kind"] == "credit"} == {2}


def test_error_of_a_peer_has_its_section_and_its_cause() -> None:
    refused = {"condition": "amqp:not-found", "description": "no node 'q'"}
    found = error_of(frame("detach", handle=0, closed=True, error=("error", refused)))
    assert found["section"] == "2.8.15"
    assert found["what"] == "amqp:not-found: no node 'q'"
    assert "no node of this address" in found["usually"]
    assert error_of(frame("close", error=("error", {"condition": "my:own"})))["section"] == "2.8.14"


def test_rejected_delivery_is_an_error_with_and_without_a_reason() -> None:
    state = ("rejected", {"error": ("error", {"condition": "amqp:decode-error"})})
    with_reason = error_of(frame("disposition", role=True, first=0, state=state))
    assert (with_reason["section"], with_reason["what"]) == ("2.8.15", "amqp:decode-error")
    without = error_of(frame("disposition", role=True, first=0, state=("rejected", {})))
    assert (without["section"], without["what"]) == ("3.4.2", "rejected")


@pytest.mark.parametrize(("code", "name"), [(1, "auth"), (2, "sys"), (3, "sys_perm"), (4, "sys_temp")])
def test_failed_outcome_of_sasl_is_an_error(code: int, name: str) -> None:
    found = error_of(frame("sasl-outcome", code=code))
    assert (found["section"], found["what"]) == ("5.3.3.6", f"SASL outcome {name}")
    assert "error" not in shown(("<", frame("sasl-outcome", code=0)))["rows"][0]


@pytest.mark.parametrize(
    ("octets", "what", "usually"),
    [
        (raw_frame(b"\x40"), "expected a performative, got 0x40", "not a value of the expected type"),
        (b"HTTP/1.1 400 Bad Request\r\n", "octets", "not a frame"),
    ],
)
def test_octets_that_cannot_be_read_are_an_error(octets: bytes, what: str, usually: str) -> None:
    found = error_of(octets)
    assert found["section"] == "2.3"
    assert what in found["what"]
    assert usually in found["usually"]


def test_header_that_answers_with_another_is_an_error() -> None:
    same = shown((">", header("sasl") + header()), ("<", header("sasl") + header()))
    assert not [row for row in same["rows"] if "error" in row]
    other = shown((">", header()), ("<", header("sasl")))
    assert [row.get("error", {}).get("section") for row in other["rows"]] == [None, "2.2"]


def test_delivery_without_credit_is_an_error() -> None:
    page = shown(
        (">", frame("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        (">", frame("attach", name="l", handle=0, role=False, initial_delivery_count=0)),
        (">", frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t")),
    )
    assert page["rows"][2]["error"]["section"] == "2.6.7"
    assert page["deliveries"][0]["tag"] == "t"


def test_error_within_a_delivery_beyond_credit_is_the_one_that_is_shown() -> None:
    state = ("rejected", {})
    page = shown(
        (">", frame("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
        (">", frame("attach", name="l", handle=0, role=False, initial_delivery_count=0)),
        (">", frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", state=state)),
    )
    assert page["rows"][2]["error"]["section"] == "3.4.2"


@pytest.mark.parametrize("at", [float("nan"), float("inf")])
def test_time_that_is_no_number_is_unknown(at: float) -> None:
    """A frame log may say so, and JSON has no such number: the page would be blank."""
    assert shown((">", header()), at=at)["rows"][0]["at"] is None


def test_long_text_is_cut_and_says_so() -> None:
    page = shown((">", frame("open", container_id="x" * 5000)))
    [row] = page["rows"]
    assert len(row["text"]) < 2100
    assert row["text"].endswith("characters more")
    assert all(len(value) < 2100 for _, value in row["fields"])


def test_rows_beyond_the_most_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_model, "MOST_ROWS", 2)
    page = shown((">", header() * 5))
    assert len(page["rows"]) == 2
    assert page["leftOut"] == 3
