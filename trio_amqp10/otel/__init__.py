"""OpenTelemetry: spans of messages sent, received, processed and settled, and their context in the messages.

``instrument`` is all there is to call; it needs the extra ``otel``. Without it the rest of the library neither imports
OpenTelemetry nor pays for it.
"""

from .instrument import Instrumentation as Instrumentation
from .instrument import instrument as instrument
