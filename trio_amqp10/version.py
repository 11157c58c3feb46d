"""The version of this package; what builds it reads it here."""

from __future__ import annotations

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.2.0"
