"""The protocols that a container serves, with what the tests of this folder need of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.container.protocols.clients import CLIENTS, Client

from .last_words_scripts import LAST_WORDS, LastWords
from .refusing_scripts import REFUSING, Refusing
from .silence_scripts import SILENCE, Silence

__all__ = ["PROTOCOLS", "ProtocolUnderTest"]


@dataclass(frozen=True, kw_only=True)
class ProtocolUnderTest:
    """One protocol.

    Attributes:
        name: as ``serve(dialects=...)`` has it; ``"1.0"`` for AMQP 1.0.
        client: sends a message to a queue, and receives it from there.
        last_words: a wrong answer to its client's open; None if the client says nothing to that.
        silence: the calls of its client that await an answer.
        refusing: receivers that give a message back, and are not to get it again.
    """

    name: str
    client: Client
    refusing: Refusing
    silence: Silence
    last_words: LastWords | None


PROTOCOLS: Final = {
    "1.0": ProtocolUnderTest(
        name="1.0",
        client=CLIENTS["1.0"],
        refusing=REFUSING["1.0"],
        silence=SILENCE["1.0"],
        last_words=LAST_WORDS["1.0"],
    ),
    "0-9-1": ProtocolUnderTest(
        name="0-9-1",
        client=CLIENTS["0-9-1"],
        refusing=REFUSING["0-9-1"],
        silence=SILENCE["0-9-1"],
        last_words=LAST_WORDS["0-9-1"],
    ),
    "10.3": ProtocolUnderTest(
        name="10.3",
        client=CLIENTS["10.3"],
        refusing=REFUSING["10.3"],
        silence=SILENCE["10.3"],
        last_words=LAST_WORDS["10.3"],
    ),
    "amqp-fast": ProtocolUnderTest(
        name="amqp-fast",
        client=CLIENTS["amqp-fast"],
        refusing=REFUSING["amqp-fast"],
        silence=SILENCE["amqp-fast"],
        last_words=LAST_WORDS["amqp-fast"],
    ),
    "1.0-draft-2010": ProtocolUnderTest(
        name="1.0-draft-2010",
        client=CLIENTS["1.0-draft-2010"],
        refusing=REFUSING["1.0-draft-2010"],
        silence=SILENCE["1.0-draft-2010"],
        last_words=LAST_WORDS["1.0-draft-2010"],
    ),
}
"""By name."""
