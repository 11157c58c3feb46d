"""The fuzzer's own parts: shares, results of several runs, frames that are cut, and what a peer of 0-9-1 may not write."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from .amqp091.naive import carry, frames, method, say, written_frame
from .fuzz import __main__ as fuzz_main
from .fuzz import seeds, seeds091
from .fuzz.mutate import AMQP091, AMQP10, Framing
from .fuzz.reactions import check_reactions
from .fuzz.shares import WHOLE_ONE_OF, accumulate, executions_in, executions_of
from .fuzz.targets import TARGETS

if TYPE_CHECKING:
    from pathlib import Path


def result(name: str, attempts: int) -> dict[str, object]:
    return {"target": name, "attempts": attempts, "failures": 0, "measured": 1, "seconds": 0.5}


@pytest.mark.parametrize("total", [100_000, 20_000_000])
def test_whole_targets_get_one_execution_of_200_however_many_there_are(total: int) -> None:
    plans = executions_of(list(TARGETS), total)
    whole = sum(count for name, count in plans.items() if TARGETS[name].whole)
    assert abs(whole - total // WHOLE_ONE_OF) <= len(TARGETS)
    assert abs(sum(plans.values()) - total) <= len(TARGETS)


def test_targets_of_one_kind_get_all_executions_when_no_others_are_named() -> None:
    assert executions_of(["container", "091-container"], 1000) == {"container": 500, "091-container": 500}
    assert executions_of(["values"], 1000) == {"values": 1000}


def test_results_accumulate_by_target_and_commit_over_runs(tmp_path: Path) -> None:
    file = tmp_path / "fuzz.json"
    accumulate(file, 1, [result("values", 10), result("091-tables", 5)])
    accumulate(file, 2, [result("values", 7)])
    rows = {row["target"]: row for row in json.loads(file.read_text())["figures"]["targets"]}
    assert (rows["values"]["attempts"], rows["091-tables"]["attempts"]) == (17, 5)
    assert rows["values"]["measured"] == 2
    assert list(rows["values"]["commits"].values()) == [17]
    accumulate(None, 3, [result("values", 7)])


def test_executions_of_a_file_are_those_of_all_runs_and_targets(tmp_path: Path) -> None:
    file = tmp_path / "fuzz.json"
    assert executions_in(file) == 0
    accumulate(file, 1, [result("values", 30), result("091-tables", 60)])
    accumulate(file, 2, [result("values", 10)])
    assert executions_in(file) == 100


def test_a_run_goes_on_in_rounds_until_the_file_has_the_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fuzz.json"
    accumulate(file, 1, [result("values", 5)])
    arguments = ["--total", "6", "--seconds", "0.01", "--jobs", "1", "--results", str(file), "values"]
    monkeypatch.setattr("sys.argv", ["fuzz", *arguments])
    assert fuzz_main.main() == 0
    assert executions_in(file) >= 6
    assert "5 of 6 executions" in capsys.readouterr().out
    assert fuzz_main.main() == 0
    assert "executions" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("framing", "octets"),
    [(AMQP10, octets) for octets in seeds.ACCEPTED] + [(AMQP091, octets) for octets in seeds091.ACCEPTED],
)
def test_frames_are_cut_and_put_together_again(framing: Framing, octets: bytes) -> None:
    pieces = framing.split(octets)
    assert len(pieces) > 1
    assert b"".join(pieces) == octets
    for piece in pieces:
        if not piece.startswith(b"AMQP"):
            assert framing.with_body(piece, framing.body(piece)) == piece
            assert framing.split(framing.with_body(piece, b"other")) == [framing.with_body(piece, b"other")]


def test_second_writer_writes_what_the_second_reader_reads() -> None:
    octets = say("queue.declare", 3, queue="q", durable=True, no_wait=True, arguments=[("a", ("I", 1))])
    ((kind, channel, payload),) = frames(octets)
    assert (kind, channel) == (1, 3)
    name, arguments = method(payload)
    assert name == "queue.declare"
    assert arguments["durable"]
    assert arguments["no_wait"]
    assert not arguments["exclusive"]
    assert arguments["arguments"] == [(b"a", ("I", 1))]


OPENED = say("channel.open-ok")
DELIVERED = carry("basic.deliver", b"tea", {3: 1}, delivery_tag=1)
CLOSED = say("channel.close", reply_code=404)


@pytest.mark.parametrize(
    ("octets", "complaint"),
    [
        (say("connection.close", reply_code=541), "541"),
        (say("channel.close", reply_code=503), "503"),
        (say("basic.publish"), "wrong end"),
        (OPENED + CLOSED + DELIVERED, "behind a channel.close"),
        (say("connection.close", reply_code=501) + OPENED, "behind a connection.close"),
        (OPENED + DELIVERED + DELIVERED, "tags skip 2"),
        (OPENED + DELIVERED[: -len(written_frame(3, 1, b"tea"))] + say("tx.select-ok"), "amid a content"),
        (written_frame(3, 1, b"tea"), "without its header"),
        (written_frame(8, 1, b""), "heartbeat"),
        (OPENED[:-1], "end within a frame"),
        (OPENED[:-1] + b"\0", "without its end"),
    ],
)
def test_reaction_is_complained_about_when_no_rule_permits_it(octets: bytes, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_reactions(octets, "s")


def test_reactions_are_let_alone_when_they_are_as_they_should_be() -> None:
    octets = OPENED + DELIVERED + CLOSED + say("channel.close-ok") + OPENED + DELIVERED
    check_reactions(b"AMQP\0\0\x09\x01", "s")
    check_reactions(octets + say("connection.close", reply_code=501) + say("connection.close-ok"), "s")
    check_reactions(octets[:-1], "s", whole=False)
