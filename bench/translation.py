"""Processor time of a message of 0-9-1 that becomes one of 1.0, and back: ``python -m bench.translation``.

The message has seven properties, five headers and a body of 100 octets. Figures are microseconds, the least of several rounds.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.translate import to_publication, to_sections
from trio_amqp10.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, TIMES = 7, 4_000
PROPERTIES = BasicProperties(
    content_type="application/json",
    delivery_mode=2,
    priority=5,
    correlation_id="c-1",
    message_id="m-1",
    timestamp=datetime.fromtimestamp(1_700_000_000, UTC),
    headers={"a": "one", "b": 2, "c": True, "x-d": "four", "e": 5.5},
)
BODY = b"x" * 100


def microseconds(call: Callable[[], object]) -> float:
    """Processor time of one call."""
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(TIMES):
            call()
        least = min(least, time.process_time() - began)
    return least / TIMES * 1e6


def there() -> bytes:
    return to_sections(PROPERTIES, BODY, exchange="e", routing_key="k")


def main() -> None:
    """Print both directions."""
    payload = there()
    back = microseconds(lambda: to_publication(Message.from_payload(payload)))
    sys.stdout.write(f"0-9-1 to 1.0: {microseconds(there):.1f} us\n1.0 to 0-9-1: {back:.1f} us\n")


if __name__ == "__main__":
    main()
