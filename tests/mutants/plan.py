"""Which modules are mutated, and by which tests they are to be killed."""

from __future__ import annotations

from typing import Final, NamedTuple


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
    ("tests/amqp10/engine",),
    ("test_chunks.py", "test_exactly_once.py", "test_fast.py", "test_hostile.py", "test_machine.py"),
)
_RIGHTS: Final = (
    "tests/broker/rights/test_access.py",
    "tests/container/test_cbs.py",
    "tests/broker/rights/test_guard.py",
    "tests/broker/rights/test_quotas.py",
    "tests/amqp10/server/test_sole_connection.py",
    "tests/broker/nodes/test_watermark.py",
)
_QUEUE: Final = (
    "tests/broker/nodes/test_queue.py",
    "tests/broker/nodes/test_queue_alone.py",
    "tests/broker/nodes/test_queue_credit.py",
    "tests/broker/nodes/test_queue_expiry_model.py",
    "tests/broker/nodes/test_consumers.py",
    "tests/broker/nodes/test_held_messages.py",
    "tests/broker/nodes/test_queue_model.py",
    "tests/broker/nodes/test_policy.py",
    "tests/broker/nodes/test_queue_rules.py",
    "tests/broker/nodes/test_queue_time.py",
    "tests/broker/nodes/test_deadletters.py",
    "tests/broker/nodes/test_delayed_redelivery.py",
    "tests/broker/nodes/test_message_store.py",
    "tests/broker/test_durable_transactions.py",
    "tests/amqp10/server/test_failing_links.py",
    "tests/broker/nodes/test_groups.py",
    "tests/container/test_handlers.py",
    "tests/amqp10/server/test_link_store.py",
    "tests/container/management/test_management_node.py",
    "tests/amqp10/server/test_outlets.py",
    "tests/broker/nodes/test_entry.py",
    "tests/broker/stores/test_node_settings.py",
    "tests/amqp10/server/test_outcomes.py",
    "tests/broker/nodes/test_pull.py",
    "tests/broker/nodes/test_relay.py",
    "tests/broker/test_transactions.py",
    "tests/broker/nodes/test_watermark.py",
    "tests/broker/exchanges/test_death_history.py",
    "tests/broker/exchanges/test_publishing.py",
    "tests/broker/exchanges/test_topology.py",
    "tests/broker/exchanges/test_waiting.py",
)
"""What other tests of the container notice besides is luck; and a survivor costs the time of all of them."""

PLANS: Final[dict[str, Plan]] = {
    "amqp10/engine/settlement": Plan(("amqp10/engine/settlement.py",), *_ENGINE),
    "amqp10/engine/session_windows": Plan(("amqp10/engine/session_windows.py",), *_ENGINE),
    "amqp10/engine/link": Plan(("amqp10/engine/link.py",), *_ENGINE),
    "container/queue": Plan(("broker/nodes/queue.py", "broker/nodes/held_messages.py"), _QUEUE),
    "broker/rights": Plan(("broker/rights/*.py",), _RIGHTS),
    "sasl": Plan(("sasl/*.py",), ("tests/sasl",), ("test_mutations.py",)),
    "amqp10/wire/decode": Plan(("amqp10/wire/decode.py",), ("tests/amqp10/wire",)),
}
"""By the names that ``MODULES`` takes."""
