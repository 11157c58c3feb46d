"""Which modules are mutated, and by which tests they are to be killed."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["PLANS", "Plan"]


class Plan(NamedTuple):
    """A group of modules with the same tests.

    Attributes:
        modules: patterns of paths inside the package.
        tests: paths that pytest gets.
        ignored: tests that are left out: they start processes or threads, try all there is, or cover no more than others.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    ignored: tuple[str, ...] = ()


_ENGINE: Final = (
    ("tests/engine",),
    ("test_chunks.py", "test_exactly_once.py", "test_fast.py", "test_hostile.py", "test_machine.py"),
)
_RIGHTS: Final = tuple(
    f"tests/container/test_{each}.py"
    for each in ("access", "cbs", "guard", "quotas", "sole_connection", "watermark")
)
_QUEUE: Final = tuple(
    f"tests/container/test_{each}.py"
    for each in (
        *(
            "queue",
            "queue_credit",
            "queue_filters",
            "queue_leases",
            "queue_model",
            "queue_policy",
            "queue_rules",
            "queue_time",
        ),
        *(
            "dead_letters",
            "durable_queues",
            "failing_links",
            "groups",
            "handlers",
            "message_size",
            "outcomes",
        ),
        *("pull", "relay", "transactions"),
    )
)
"""What other tests of the container notice besides is luck; and a survivor costs the time of all of them."""

PLANS: Final[dict[str, Plan]] = {
    "engine/settlement": Plan(("engine/settlement.py",), *_ENGINE),
    "engine/session_windows": Plan(("engine/session_windows.py",), *_ENGINE),
    "engine/link": Plan(("engine/link.py",), *_ENGINE),
    "container/queue": Plan(("container/nodes/queue.py", "container/nodes/held_messages.py"), _QUEUE),
    "container/rights": Plan(("container/rights/*.py",), _RIGHTS),
    "sasl": Plan(("sasl/*.py",), ("tests/sasl",), ("test_mutations.py",)),
    "wire/decode": Plan(("wire/decode.py",), ("tests/wire",)),
}
"""By the names that ``MODULES`` takes."""
