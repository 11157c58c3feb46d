"""The manual's page of frames has the frames that clients and the container write."""

from __future__ import annotations

from trio_amqp10.container.dialects import DIALECTS

from .wires_page import PAGE, WIRES, page_with, record


def test_every_wire_is_on_the_page() -> None:
    assert WIRES.keys() == {"1.0", *DIALECTS}
    text = PAGE.read_text()
    assert all(f"- ``{name}``\n" in text for name in DIALECTS)


async def test_page_has_the_frames_of_a_conversation() -> None:
    page = page_with({wire: await record(wire) for wire in WIRES})
    assert PAGE.read_text() == page, "run python -m tests.container.wires_page"
