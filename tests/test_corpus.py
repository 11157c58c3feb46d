"""Every file of the corpus, thrown again at its target; and the seeds of the fuzzer are what they claim to be."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.fuzz.corpus import CORPUS, load, store
from tests.fuzz.mutate import mutated
from tests.fuzz.targets import TARGETS, attempt
from trio_amqp10.errors import RemoteProtocolError

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


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_target_raises_nothing_else_when_octets_are_broken(name: str) -> None:
    rng = random.Random(name)
    target = TARGETS[name]
    for _ in range(300):
        attempt(target, mutated(rng, target.seeds, framed=target.framed))


def test_corpus_file_gives_back_what_was_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.corpus.CORPUS", tmp_path)
    file = store("sasl-server", bytes(range(256)), "a story\nof two lines")
    assert file.read_text().startswith("# a story of two lines\n")
    assert load(file) == ("sasl-server", bytes(range(256)))
