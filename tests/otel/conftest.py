"""Spans kept in memory, and what to ask of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

if TYPE_CHECKING:
    from collections.abc import Iterator


class Told:
    """The spans that have ended.

    Attributes:
        provider: what makes them.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """Of all of them."""
        return [span.name for span in self.spans()]

    def take(self, name: str) -> ReadableSpan:
        """The only span of this name."""
        [span] = [span for span in self.spans() if span.name == name]
        return span

    def clear(self) -> None:
        """Forget them."""
        self._exporter.clear()


@pytest.fixture
def told() -> Iterator[Told]:
    spans = Told()
    yield spans
    spans.provider.shutdown()
