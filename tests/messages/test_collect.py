"""The collector reads each message as it is raised, and no other text."""

from __future__ import annotations

import pytest

from .collect import messages, messages_in


def found(source: str, **others: str) -> set[tuple[str, str]]:
    """The kinds and texts of the messages of a module, and of modules that it imports."""
    modules = {"package/one.py": source} | {f"package/{name}.py": text for name, text in others.items()}
    return {(each.kind, each.shown) for each in messages_in(modules)}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("LocalProtocolError", "prefetch=...: expected 1 to 65535, or None for no limit"),
        ("RemoteProtocolError", "handle ... is over the handle-max of ... (...)"),
        ("RefusedError", "there is no node ..."),
        ("OptionError", "option ... is missing: set it"),
        ("UsageError", "--message-id is for one message: give its --body, and no --count."),
        ("StoreError", "the store ... is closed: open another SqliteStore of that file"),
        ("log", "... could not be declared again: ..."),
        ("ClosedResourceError", "the link ... was closed here"),
    ],
)
def test_messages_of_each_kind_are_collected(kind: str, text: str) -> None:
    assert (kind, text) in {(each.kind, each.shown) for each in messages()}


@pytest.mark.parametrize(
    ("source", "kind", "text"),
    [
        ('raise ValueError(f"size={n!r}: expected 1")', "ValueError", "size=...: expected 1"),
        ('_log.warning("%r was lost: %s", a, b)', "log", "... was lost: ..."),
        ('def f():\n    why = "the node failed"\n    raise OSError(why)', "OSError", "the node failed"),
        ('raise OSError("the node " + "failed")', "OSError", "the node failed"),
        ('raise OSError("the node " + name)', "OSError", "the node ..."),
        ('raise OSError("%s is lost" % name)', "OSError", "... is lost"),
        ('WHY = "the node failed"\nraise OSError(WHY)', "OSError", "the node failed"),
        ('class OwnError(Exception): ...\nraise OwnError("the node failed")', "OwnError", "the node failed"),
        ('raise trio.ClosedResourceError("the node closed")', "ClosedResourceError", "the node closed"),
        ('link.close(Error("amqp:x", "the node failed"))', "Error", "the node failed"),
        (
            'class SizeError(OSError):\n    def __init__(self, n):\n        super().__init__(f"a size of {n}")\nraise SizeError(3)',
            "SizeError",
            "a size of 3",
        ),
        (
            'def refuse(why: str):\n    raise OSError(f"not sent: {why}")\nrefuse("the queue is full")',
            "OSError",
            "not sent: the queue is full",
        ),
        (
            'def told(a):\n    return f"{a} at the end"\nraise OSError(told("a comma is"))',
            "OSError",
            "a comma is at the end",
        ),
        (
            'class A:\n    def fail(self, why: str):\n        raise OSError(why)\n    def go(self):\n        self.fail("the node failed")',
            "OSError",
            "the node failed",
        ),
    ],
)
def test_message_is_collected(source: str, kind: str, text: str) -> None:
    assert found(source) == {(kind, text)}


def test_both_sides_of_a_condition_are_messages() -> None:
    source = 'raise OSError("the node is full" if full else f"the node {name} is lost")'
    assert found(source) == {("OSError", "the node is full"), ("OSError", "the node ... is lost")}


def test_text_is_at_the_caller_in_another_module() -> None:
    other = 'def refuse(why: str):\n    raise OSError(f"not sent: {why}")'
    called = 'from .other import refuse\nrefuse("the queue is full")'
    assert found(called, other=other) == {("OSError", "not sent: the queue is full")}
    own = 'def refuse(why): ...\nrefuse("the queue is full")'
    assert found(own, other=other) == {("OSError", "not sent: ...")}


@pytest.mark.parametrize(
    "source", ['print("the node failed")', 'assert x, "the node failed"', 'raise KeyError("a b")']
)
def test_other_texts_are_no_messages(source: str) -> None:
    assert found(source) == set()
