"""Samples of figures as lines of JSON or as text, and tables in which names of peers do nothing."""

from __future__ import annotations

import pytest
from rich.console import Console

from trio_amqp10.tools.cli.screen import Screen, number, table


def text_of(made: object) -> str:
    console = Console(width=80, force_terminal=False)
    with console.capture() as shown:
        console.print(made)
    return shown.get()


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (0, "0"), (1234567, "1,234,567"), (1234.5, "1,234.5")]
)
def test_number_has_commas_and_none_is_empty(value: float | None, text: str) -> None:
    assert number(value) == text


def test_words_stand_left_and_numbers_right() -> None:
    lines = text_of(table("queues", ("address", "depth"), [("a", "7"), ("longer", "1,000")])).splitlines()
    assert [line.rstrip() for line in lines] == [
        "queues",
        "address  depth",
        "a            7",
        "longer   1,000",
    ]


def test_name_of_a_peer_is_neither_markup_nor_an_escape_code() -> None:
    shown = text_of(table("", ("address",), [("[red]x[/red]",), ("a\x1b[2Jb",)]))
    assert "[red]x[/red]" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("json", "shown"), [(True, '{"n": 1}\n'), (False, "n is 1\n")], ids=["json", "text"])
async def test_sample_is_a_line_of_json_or_a_drawing(
    json: bool, shown: str, capfd: pytest.CaptureFixture[str]
) -> None:
    screen = Screen(once=True, json=json)
    with screen:
        await screen.show(lambda: b'{"n": 1}\n', lambda: "n is 1")
    assert capfd.readouterr().out == shown


async def test_table_in_a_pipe_has_all_octets_of_its_cells(capfd: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    made = table("", ("name", "depth"), [(long, "7"), ("b", "12")])
    await Screen(once=True, json=False).show(bytes, lambda: made)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [["name", "depth"], [long, "7"], ["b", "12"]]


def test_columns_without_names_have_no_header() -> None:
    assert text_of(table("", ("", ""), [("depth", "7")])) == "depth  7\n"
