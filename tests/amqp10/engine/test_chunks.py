"""Whatever the chunks, the same events and the same octets: a transport may cut anywhere."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from random import Random

import pytest

from .conversations import CONVERSATIONS, Conversation, replay

conversations = pytest.mark.parametrize("conversation", CONVERSATIONS.values(), ids=CONVERSATIONS)


def pieces(octets: bytes, cuts: list[int]) -> list[bytes]:
    """``octets``, cut at these offsets."""
    edges = [0, *cuts, len(octets)]
    return [octets[a:b] for a, b in pairwise(edges)]


def cut_once(step: int, at: int, number: int, octets: bytes) -> list[bytes]:
    """The octets of this step cut there, those of all others whole."""
    return pieces(octets, [at] if number == step else [])


@conversations
def test_engine_tells_and_writes_the_same_octet_by_octet(conversation: Conversation) -> None:
    whole = replay(conversation)
    assert replay(conversation, lambda _, octets: pieces(octets, list(range(1, len(octets))))) == whole


@conversations
def test_engine_tells_and_writes_the_same_when_a_step_is_cut_in_two(conversation: Conversation) -> None:
    whole = replay(conversation)
    for number, step in enumerate(conversation[1]):
        if isinstance(step, bytes):
            for cut in range(1, len(step)):
                got = replay(conversation, partial(cut_once, number, cut))
                assert got == whole, f"step {number} cut at {cut}"


@pytest.mark.parametrize("worth", [0, 1, 64])
@conversations
def test_engine_tells_and_writes_the_same_at_random_cuts(
    conversation: Conversation, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = replay(conversation)
    monkeypatch.setattr("trio_amqp10.amqp10.engine.frame_reader._WORTH", worth)
    for seed in range(50):
        random = Random(seed)

        def cut(_: int, octets: bytes, random: Random = random) -> list[bytes]:
            return pieces(
                octets, sorted(random.randrange(len(octets) + 1) for _ in range(random.randrange(9)))
            )

        assert replay(conversation, cut) == whole, f"seed {seed}"


def test_conversations_reach_what_they_are_named_after() -> None:
    told = {name: str(replay(conversation)[0]) for name, conversation in CONVERSATIONS.items()}
    assert len(told) >= 20
    assert "window-violation" in told["windows used up"]
    assert "transfer-limit-exceeded" in told["credit used up"]
    assert "SecurityDowngradeError" in told["SASL, downgraded"]
    assert "Authenticated" in told["SASL, in rounds"]
    assert "b'payloadandend'" in told["receiving"]
