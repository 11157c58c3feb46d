"""What the fuzzers of other implementations found worth keeping, thrown at what reads such octets here."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Final

import pytest

from .fuzz.target import attempt
from .fuzz.targets import TARGETS

_CORPORA: Final = Path(__file__).with_name("corpora")

_STREAMS: Final = ("stream-accepted", "stream-dialled")
_VALUES: Final = ("values", "performatives", "messages")
KINDS: Final = [
    ("qpid-proton", "fuzz-connection-driver", 544, _STREAMS),
    ("qpid-proton", "fuzz-proactor-receive", 1529, _STREAMS),
    ("qpid-proton", "fuzz-message-decode", 318, _VALUES),
    ("go-amqp", "conn", 353, _STREAMS),
    ("go-amqp", "marshal", 215, _VALUES),
]
"""Of which implementation, for which of its fuzzers, how many, and what they are thrown at."""


@pytest.mark.parametrize(
    ("corpus", "fuzzer", "count", "names"), KINDS, ids=[f"{row[0]} {row[1]}" for row in KINDS]
)
def test_corpus_of_others_is_answered_as_broken_octets_are(
    corpus: str, fuzzer: str, count: int, names: tuple[str, ...]
) -> None:
    thrown = 0
    with tarfile.open(_CORPORA / f"{corpus}.tar.xz") as archive:
        for member in archive:
            if not member.name.startswith(f"{fuzzer}/"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            octets = file.read()
            thrown += 1
            for name in names:
                try:
                    attempt(TARGETS[name], octets)
                except Exception as failure:
                    raise AssertionError(f"{member.name}, thrown at {name}: {failure!r}") from failure
    assert thrown == count
