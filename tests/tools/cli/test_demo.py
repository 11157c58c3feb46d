"""amqp10 demo sends and receives, and shows it."""

from __future__ import annotations

from .conftest import (
    done,
)


def test_demo_sends_and_receives_and_shows_it() -> None:
    shown = done("demo").decode()
    assert "sent      'a string': accepted" in shown
    assert "received  {'an': 'AMQP map'" in shown
    assert "IS ANYBODY THERE?" in shown
    assert "Transfer(" not in shown


def test_demo_shows_frames_when_asked() -> None:
    shown = done("demo", "--frames").decode()
    for what in ("-> header AMQP 3 1.0.0", "<- [0] Open(", "-> [0] Transfer(", "<- [0] Disposition("):
        assert what in shown
    assert shown.count("Transfer(") == 10  # each once, as the end sees it that dialled
