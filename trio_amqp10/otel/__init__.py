"""OpenTelemetry: spans and context of messages, and metrics.

Contains only ``instrument`` and ``Metrics``; they need the extra ``otel``. The rest of the library neither imports
OpenTelemetry nor does any work for it unless they are used.
"""

from .instrument import Instrumentation, instrument
from .metrics import Metrics

__all__ = ["Instrumentation", "Metrics", "instrument"]
