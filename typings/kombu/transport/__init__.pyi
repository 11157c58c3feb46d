from typing import Any

TRANSPORT_ALIASES: dict[str, Any]
