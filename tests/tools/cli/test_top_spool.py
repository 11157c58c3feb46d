"""``amqp10 top --spool``: figures that a query writes, once, live, and until nobody writes any more."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.tools.cli.top_spool import SpoolSample

from .conftest import done, failed, interrupt, start

if TYPE_CHECKING:
    from pathlib import Path

FIGURES: dict[str, Any] = {
    "connections": 2,
    "received": 1000,
    "duplicates": 3,
    "rejected": 0,
    "depth": 12345,
    "resting": 0,
    "spool": "0123456789abcdef",
    "rows": 997,
    "rows_waiting": 456,
    "octets_waiting": 78_901,
    "full": False,
    "lag_seconds": 1.5,
}


def write(folder: Path, **figures: Any) -> None:
    folder.mkdir(exist_ok=True)
    tmp = folder / "tmp-metrics.json"
    tmp.write_text(json.dumps(FIGURES | {"at": time.time()} | figures))
    tmp.rename(folder / "metrics.json")


def test_figures_of_a_spool_are_shown_once(tmp_path: Path) -> None:
    write(tmp_path)
    shown = json.loads(done("top", "--spool", str(tmp_path), "--once", "--json"))
    [spool] = shown["spools"]
    assert FIGURES.items() <= spool.items()
    assert (spool["folder"], "rate" in spool) == (".", False)
    text = done("top", "--spool", str(tmp_path), "--once").decode()
    assert {"01234567", "receiving", "456", "78,901", "12,345", "1.5"} <= set(text.split())


def test_spools_of_several_folders_are_rows_of_one_table(tmp_path: Path) -> None:
    write(tmp_path / "one", full=True)
    write(tmp_path / "two", at=time.time() - 100)
    text = done("top", "--spool", str(tmp_path), "--once").decode()
    one, two = [line for line in text.splitlines() if line.startswith(("one", "two"))]
    assert "full" in one
    assert "silent for 10" in two


def test_lanes_of_a_spool_are_rows_of_one_table(tmp_path: Path) -> None:
    for lane in ("lane-0", "lane-1"):
        (tmp_path / "lanes").mkdir(exist_ok=True)
        write(tmp_path / "lanes" / lane)
    shown = json.loads(done("top", "--spool", str(tmp_path), "--once", "--json"))
    assert [each["folder"] for each in shown["spools"]] == ["lanes/lane-0", "lanes/lane-1"]


def test_lines_have_rates_between_two_writings_of_the_file(tmp_path: Path) -> None:
    now = time.time()
    write(tmp_path, at=now)
    process = start("top", "--spool", str(tmp_path), "--interval", "0.05", "--json")
    assert process.stdout is not None
    assert "rate" not in json.loads(process.stdout.readline())["spools"][0]
    write(tmp_path, at=now + 2, received=1500)
    rates = [json.loads(process.stdout.readline())["spools"][0].get("rate") for _ in range(2)]
    while rates[-1] is None:
        rates.append(json.loads(process.stdout.readline())["spools"][0].get("rate"))
    assert rates[-1] == 250.0
    assert (
        json.loads(process.stdout.readline())["spools"][0]["rate"] == 250.0
    )  # not 0, because nothing was written
    interrupt(process)
    assert process.returncode == 0


def test_rate_of_another_run_is_none() -> None:
    before = SpoolSample(time=1, spools={".": FIGURES | {"at": 1}})
    after = SpoolSample(time=2, spools={".": FIGURES | {"at": 2, "received": 7}})
    assert after.rate(".", before) is None
    assert after.rate(".", SpoolSample(time=1, spools={})) is None


def test_what_waits_is_that_of_the_files_also_when_receiving_has_ended(tmp_path: Path) -> None:
    write(tmp_path, at=time.time() - 100)
    (tmp_path / "spool.json").write_text(json.dumps({"spool": "id", "version": 2}))
    (tmp_path / f"low-{3:020d}").touch()
    segment = tmp_path / f"seg-{0:020d}-{10:020d}.arrow"
    segment.write_bytes(bytes(50))
    os.utime(segment, (time.time() - 1000,) * 2)
    [spool] = json.loads(done("top", "--spool", str(tmp_path), "--once", "--json"))["spools"]
    assert (spool["rows_waiting"], spool["octets_waiting"], spool["received"]) == (7, 50, 1000)
    assert 1000 <= spool["lag_seconds"] < 1100


@pytest.mark.parametrize(
    ("where", "message"),
    [("dbfs:/x", "no store of the scheme 'dbfs'"), ("s3://", "names a bucket")],
)
def test_place_that_is_none_is_an_error(where: str, message: str) -> None:
    assert message in failed("top", "--spool", where, "--once", code=2)


def test_silence_of_the_receiver_ends_the_command(tmp_path: Path) -> None:
    write(tmp_path, at=time.time() - 100)
    assert b"silent for 10" in done("top", "--spool", str(tmp_path), "--timeout", "20")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no metrics.json in"),
        ("{", "has no figures of a spool"),
        ("[]", "has no figures of a spool"),
    ],
)
def test_folder_without_figures_is_an_error(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "metrics.json").write_text(content)
    assert message in failed("top", "--spool", str(tmp_path), "--once")


@pytest.mark.parametrize("arguments", [[], ["amqp://h", "--spool", "."], ["amqp://h", "--timeout", "5"]])
def test_url_and_spool_exclude_each_other(arguments: list[str]) -> None:
    from click.testing import CliRunner

    from trio_amqp10.tools.cli.commands import amqp10

    result = CliRunner().invoke(amqp10, ["top", *arguments])
    assert result.exit_code == 2
