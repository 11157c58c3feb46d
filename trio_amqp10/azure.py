"""The former path of ``trio_amqp10.testing.azure_emulator``: works for one more release, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

from trio_amqp10.testing import azure_emulator


def __getattr__(name: str) -> Any:
    if name not in azure_emulator.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name} is in trio_amqp10.testing.azure_emulator now", DeprecationWarning, stacklevel=2)
    return getattr(azure_emulator, name)
