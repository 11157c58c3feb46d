"""The version of this package; what builds it reads it here."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.2.0"
