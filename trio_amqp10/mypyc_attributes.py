"""What the sources say to the compiler of the optional compiled wheel, and to nobody else.

``mypyc`` reads ``mypyc_attr`` by name, and takes it out. Where the sources run as they are it must be there all the
same, without ``mypy_extensions``, which only the compiler needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["mypyc_attr"]

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr
else:

    def mypyc_attr(**_says):
        """A decorator that leaves the class as it is."""
        return lambda cls: cls
