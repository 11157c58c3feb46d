"""The version of this package; the build reads it from here."""

from __future__ import annotations

__version__ = "0.3.0"
