"""Every file of the corpus, thrown again at its target; and the seeds of the fuzzer are what they claim to be."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import RemoteProtocolError

from .fuzz.corpus import CORPUS, load, store
from .fuzz.judge import measured
from .fuzz.script import Act, Move, pack, unpack
from .fuzz.shrink import shrunk
from .fuzz.target import FuzzTarget, attempt
from .fuzz.targets import TARGETS
from .meter import TooMuchError, steps

if TYPE_CHECKING:
    from pathlib import Path

REFUSED_BY_NATURE = {"sasl-client"}
"""A refused log-in is an error to the client that is told of it."""


@pytest.mark.parametrize("file", sorted(CORPUS.glob("*.hex")), ids=lambda file: file.stem)
def test_corpus_is_answered_as_broken_octets_are(file: Path) -> None:
    name, octets = load(file)
    attempt(TARGETS[name], octets)


@pytest.mark.parametrize("name", sorted(TARGETS.keys() - REFUSED_BY_NATURE))
def test_seed_is_read_to_its_end_when_nothing_is_broken(name: str) -> None:
    for octets in TARGETS[name].seeds:
        try:
            TARGETS[name].run(octets)
        except RemoteProtocolError as failure:
            if name != "sasl-server":
                raise AssertionError(octets.hex()) from failure


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.whole)])
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_target_raises_nothing_else_when_octets_are_broken(name: str, rounds: int) -> None:
    rng = random.Random(name)
    target = TARGETS[name]
    for _ in range(rounds * 10 if target.make is None else rounds):
        attempt(target, target.octets(rng))


def test_corpus_file_gives_back_what_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.corpus.CORPUS", tmp_path)
    file = store("sasl-server", bytes(range(256)), "a story\nof two lines")
    assert file.read_text().startswith("# a story of two lines\n")
    assert load(file) == ("sasl-server", bytes(range(256)))


@pytest.mark.whole
@pytest.mark.parametrize("name", sorted(TARGETS))
def test_target_takes_steps_and_memory_in_proportion(name: str) -> None:
    rng = random.Random(name)
    target = TARGETS[name]
    for how in ("steps", "memory"):
        for _ in range(30 if target.make is None else 3):
            assert measured(target, target.octets(rng), how) is None


def test_meter_stops_what_takes_more_steps_than_it_may() -> None:
    with pytest.raises(TooMuchError, match="more than 100 steps"):
        steps(lambda: [encode(each) for each in range(1000)], 100)


def test_script_is_read_back_whatever_its_octets_are() -> None:
    moves = [Move(Act.SAY, 2, b"octets"), Move(Act.CUT, 0), Move(Act.CLOCK, 1, struct.pack(">I", 1500))]
    assert unpack(pack(moves)) == moves
    assert moves[2].seconds == 1.5
    rng = random.Random(0)
    for _ in range(100):
        unpack(rng.randbytes(50))


@pytest.mark.parametrize("name", ["container", "program"])
def test_script_does_the_same_each_time(name: str) -> None:
    target = TARGETS[name]
    octets = target.octets(random.Random(3))
    attempt(target, octets)  # what is made once for all is made
    first = steps(lambda: attempt(target, octets))
    # Nearly: a section that looks like ones before is read in fewer steps (``message.section_shapes``).
    assert steps(lambda: attempt(target, octets)) == pytest.approx(first, rel=0.01)


def test_failure_of_a_script_is_kept_when_it_is_made_smaller() -> None:
    def run(octets: bytes) -> None:
        acts = [move.act for move in unpack(octets)]
        assert not (Act.CUT in acts and Act.EOF in acts)

    moves = [Move(Act.SAY, 0), Move(Act.CUT, 0), Move(Act.SAY, 1), Move(Act.EOF, 1), Move(Act.DEAF, 1)]
    smaller = shrunk(FuzzTarget(run), pack(moves))
    assert [move.act for move in unpack(smaller)] == [Act.CUT, Act.EOF]
