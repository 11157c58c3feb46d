"""Durations of operations, by the messaging conventions (1.44).

Knows the attributes of spans, and keeps those with few values; knows neither messages nor links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
_NAME: Final = "trio_amqp10"
_BOUNDARIES: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)

_OF_MANY_VALUES: Final = frozenset(
    {
        "messaging.client.id",
        "messaging.message.id",
        "messaging.message.conversation_id",
        "messaging.batch.message_count",
        "messaging.destination.temporary",
    }
)
"""Attributes of spans with so many values that histograms must omit them."""


class Durations:
    """The two histograms of one provider.

    Args:
        meter_provider: the global one if None.
    """

    def __init__(self, meter_provider: metrics.MeterProvider | None) -> None:
        meter = metrics.get_meter(_NAME, "", meter_provider, _SCHEMA)
        self._operations = meter.create_histogram(
            "messaging.client.operation.duration",
            "s",
            "Duration of sending, receiving or settling.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )
        self._processing = meter.create_histogram(
            "messaging.process.duration",
            "s",
            "Duration of the work on a message.",
            explicit_bucket_boundaries_advisory=_BOUNDARIES,
        )

    def record(self, seconds: float, facts: Mapping[str, Any], failure: BaseException | None) -> None:
        """Record the duration of one finished operation.

        Args:
            seconds: the duration.
            facts: the attributes of its span.
            failure: why it failed; None if it succeeded.
        """
        kept = {name: value for name, value in facts.items() if name not in _OF_MANY_VALUES}
        if facts.get("messaging.destination.temporary"):
            kept.pop("messaging.destination.name", None)
        if failure is not None:
            kept["error.type"] = error_type(failure)
        histogram = self._processing if facts["messaging.operation.type"] == "process" else self._operations
        histogram.record(seconds, kept)


def error_type(failure: BaseException) -> str:
    """Return the peer's error condition, or the class of the exception.

    Both have few values.
    """
    error = getattr(failure, "error", None)
    condition = getattr(error, "condition", None) or getattr(failure, "condition", None)
    kind = type(failure)
    return str(condition or f"{kind.__module__}.{kind.__qualname__}")
