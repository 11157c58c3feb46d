"""A decorator for the compiler of the optional compiled wheel.

``mypyc`` recognizes ``mypyc_attr`` by its name, and removes it. Uncompiled sources need it too, but without
``mypy_extensions``, which only the compiler needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_attributes):
        """Return a decorator that does not change the class."""
        return lambda cls: cls
