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
    f"tests/container/{each}.py"
    for each in [
        "test_queue",
        "test_queue_alone",
        "test_queue_credit",
        "test_queue_expiry_model",
        "test_queue_filters",
        "test_queue_leases",
        "test_queue_model",
        "test_queue_policy",
        "test_queue_rules",
        "test_queue_time",
        "test_dead_letters",
        "test_delayed_redelivery",
        "test_durable_queues",
        "test_durable_transactions",
        "test_failing_links",
        "test_groups",
        "test_handlers",
        "test_link_store",
        "test_management",
        "test_message_size",
        "test_message_states",
        "test_node_settings",
        "test_outcomes",
        "test_pull",
        "test_relay",
        "test_transactions",
        "test_watermark",
        "broker/test_death_history",
        "broker/test_publishing",
        "broker/test_topology",
        "broker/test_waiting",
    ]
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
