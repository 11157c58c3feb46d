"""What is made of figures: medians, gates, slopes; the command line; processor time of a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from bench import __main__ as command
from bench import results
from bench.job import Job
from bench.lab import Lab
from bench.processes import Server, run_alone
from bench.registry import ROWS, Figures, Gate, Row
from bench.table import gate_line, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OURS, THEIRS = ("ours", "us"), ("theirs", "us")


def row_of(
    *rounds: Figures, name: str = "a-row", gates: tuple[Gate, ...] = (), curve: str | None = None
) -> Row:
    """A row that finds these figures, round by round."""

    found = iter(rounds)

    @contextmanager
    def opened(_: Lab) -> Iterator[Callable[[], Figures]]:
        yield found.__next__

    return Row(name=name, about="About it.", peers=(), gates=gates, quiet=False, curve=curve, open=opened)


def test_summary_has_median_and_spread_of_each_figure() -> None:
    rounds: list[Figures] = [{OURS: 1.0}, {OURS: 5.0}, {OURS: 2.0}]
    found = results.summary(row_of(), rounds, 3.0)
    assert found["figures"] == {"ours": {"us": {"median": 2.0, "least": 1.0, "most": 5.0}}}
    assert (found["rounds"], found["slopes"], found["gates"]) == (3, {}, [])
    assert len(found["load"]) == 3


def test_gate_is_judged_by_the_ratio_of_medians() -> None:
    gate = Gate(top=THEIRS, bottom=OURS, least=3, compiled=9)
    rounds: list[Figures] = [{OURS: 2.0, THEIRS: 8.0}, {OURS: 1.0, THEIRS: 7.0}, {OURS: 4.0, THEIRS: 6.0}]
    (judged,) = results.summary(row_of(gates=(gate,)), rounds, 1.0)["gates"]
    assert judged == {
        "says": "us, theirs over ours",
        "value": 3.5,
        "least": 1.5,
        "most": 7.0,
        "wanted": "at least",
        "bound": 3,
        "met": True,
    }


@pytest.mark.parametrize(("value", "met"), [(1.4, True), (1.5, False)])
def test_gate_of_one_figure_is_its_most(value: float, met: bool) -> None:
    gate = Gate(top=OURS, most=1.4)
    (judged,) = results.summary(row_of(gates=(gate,)), [{OURS: value}], 1.0)["gates"]
    assert judged["met"] is met
    assert ("NOT MET" in gate_line(judged)) is not met


def test_gate_of_a_compiled_build_has_its_own_bound() -> None:
    gate = Gate(top=OURS, least=3, compiled=9)
    assert (gate.is_met(5, compiled=False), gate.is_met(5, compiled=True)) == (True, False)
    assert Gate(top=OURS, most=2).bound(compiled=True) == 2
    assert Gate(top=OURS, bottom=("ours", "s"), most=2).says() == "us, ours over s, ours"


def test_gate_beside_a_missing_peer_is_left_out() -> None:
    gates = (Gate(top=THEIRS, bottom=OURS, least=3), Gate(top=OURS, bottom=THEIRS, most=3))
    assert results.summary(row_of(gates=gates), [{OURS: 1.0}], 1.0)["gates"] == []


def test_curve_has_the_slope_of_each_figure_by_tenfold() -> None:
    figures: Figures = {("1", "us"): 2.0, ("10", "us"): 4.0, ("100", "us"): 6.0, ("1", "s"): 1.0}
    row = row_of(curve="links")
    found = results.summary(row, [figures], 1.0)
    assert found["slopes"] == {"us": 2.0}
    assert "us: +2 with each tenfold of links" in shown(row, found)


def test_row_is_shown_with_blanks_where_somebody_has_no_figure() -> None:
    figures: Figures = {("ours", "us"): 1234.0, ("ours", "a second"): 1.0, ("theirs", "us"): 0.123}
    text = shown(row_of(), results.summary(row_of(), [figures], 1.0))
    assert "1,234 (1,234 to 1,234)" in text
    assert text.splitlines()[-1].split() == ["theirs", "0.123", "(0.123", "to", "0.123)"]


def test_command_keeps_rows_and_measures_only_those_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"a-row": row_of({OURS: 1.0}, {OURS: 3.0}), "b-row": row_of({OURS: 9.0}, name="b-row")}
    monkeypatch.setattr(command, "ROWS", rows)
    file = tmp_path / "speed.json"
    assert command.main(["a", "--rounds", "1", "--results", str(file)]) == 0
    kept = json.loads(file.read_text())
    assert kept["rows"]["a-row"]["figures"]["ours"]["us"]["median"] == 1.0
    assert {"processor", "cores", "memory GiB", "system"} == set(kept["machine"])
    assert kept["versions"]["trio"] != "unknown"
    capsys.readouterr()
    assert command.main(["--missing", "--rounds", "1", "--results", str(file)]) == 0
    assert capsys.readouterr().out.count("About it.") == 1


def test_command_measures_again_what_was_measured_at_another_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "ROWS", {"a-row": row_of({OURS: 1.0}, {OURS: 3.0})})
    file = tmp_path / "speed.json"
    arguments = ["--missing", "--rounds", "1", "--results", str(file)]
    command.main(arguments)
    monkeypatch.setattr(command, "commit", lambda: "another")
    command.main(arguments)
    assert results.load(file)["rows"]["a-row"]["figures"]["ours"]["us"]["median"] == 3.0


def test_command_goes_on_after_a_row_that_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def broken(_: Lab) -> Iterator[Callable[[], Figures]]:
        raise RuntimeError("no such thing")
        yield

    good = row_of({OURS: 1.0})
    bad = Row(name="bad", about="", peers=(), gates=(), quiet=False, curve=None, open=broken)
    monkeypatch.setattr(command, "ROWS", {"bad": bad, "a-row": good})
    assert command.main(["--quick"]) == 1
    said = capsys.readouterr()
    assert "About it." in said.out
    assert said.err == "bad: no such thing\ncould not be measured: bad\n"


def test_command_lists_rows_and_refuses_a_name_that_none_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "direct"]) == 0
    assert "direct-full" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["no-such-row"])


def test_lab_says_which_peers_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    lab = Lab(without=frozenset({"proton"}))
    assert lab.missing("proton") == "proton is left out, as was asked for"
    assert not lab.has("proton")
    command.main(["--quick", "codec-t", "--without", "proton"])
    assert "not measured beside" not in capsys.readouterr().out


def test_lab_scales_what_is_large_and_leaves_what_is_small() -> None:
    lab = Lab(0.01)
    assert [lab.count(whole) for whole in (100_000, 1_000, 10)] == [1_000, 40, 10]
    assert lab.points((1, 10, 100)) == (1, 100)
    assert Lab().points((1, 10, 100)) == (1, 10, 100)


def test_server_counts_the_processor_time_of_its_session() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        server = Server("", process.pid)
        assert 0.3 <= server.processor_seconds() < 0.3 + time.process_time() + 5
        assert server.resident() > 1_000_000
        process.kill()
    assert Server("", os.getpid()).processor_seconds() == 0 or os.getsid(0) == os.getpid()


def test_side_that_ends_without_a_result_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="ours send ended without a result"):
        run_alone("ours", Job(role="send", url="amqp://127.0.0.1:1", count=1))
    assert "refused" in capfd.readouterr().err


def test_every_gate_speaks_of_figures_that_its_row_could_find() -> None:
    assert all((gate.least is None) != (gate.most is None) for row in ROWS.values() for gate in row.gates)
