"""Spans kept in memory, for the tests of this folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan


class Told:
    """The spans that have ended.

    Attributes:
        provider: the tracer provider.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> list[ReadableSpan]:
        """Return the spans in the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [span.name for span in self.spans()]

    def take(self, name: str) -> ReadableSpan:
        """Return the only span of this name."""
        [span] = [span for span in self.spans() if span.name == name]
        return span

    def clear(self) -> None:
        """Forget all spans."""
        self._exporter.clear()


@pytest.fixture
def told() -> Iterator[Told]:
    spans = Told()
    yield spans
    spans.provider.shutdown()


class Collected:
    """The metrics that a reader collects now."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Any]:
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}

    def value(self, name: str, **which: str) -> float:
        """Return the value of the only point with these attributes (_ stands for a dot)."""
        wanted = {key.replace("_", "."): value for key, value in which.items()}
        [point] = [
            point
            for point in self.metrics()[name].data.data_points
            if wanted.items() <= dict(point.attributes).items()
        ]
        assert isinstance(point, NumberDataPoint)
        return point.value

    def points(self, name: str) -> list[HistogramDataPoint]:
        metric = self.metrics().get(name)
        return [] if metric is None else list(metric.data.data_points)


@pytest.fixture
def collected() -> Iterator[Collected]:
    made = Collected()
    yield made
    made.provider.shutdown()


def context_of(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return (
        f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"
    )


def links_of(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def facts_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})
