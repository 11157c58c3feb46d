"""OpenTelemetry: spans and context of messages, and metrics.

``instrument`` and ``Metrics`` are all there is; they need the extra ``otel``. Without it the rest of the library neither imports
OpenTelemetry nor pays for it.
"""

from .instrument import Instrumentation as Instrumentation
from .instrument import instrument as instrument
from .metrics import Metrics as Metrics
