"""Stores of rows that outlive a container: a SQLite file, or memory for tests."""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .base import Store as Store
    from .base import StoreError as StoreError
    from .base import StoreFullError as StoreFullError
    from .base import StoreTable as StoreTable
    from .group_commit import Journal as Journal
    from .memory_store import MemoryStore as MemoryStore
    from .sqlite_store import SqliteStore as SqliteStore
else:
    from trio_amqp10.core.lazy_names import lazy_names as _lazy_names

    __getattr__, __dir__, __all__ = _lazy_names(
        __name__,
        {
            ".base": "Store StoreError StoreFullError StoreTable",
            ".group_commit": "Journal",
            ".memory_store": "MemoryStore",
            ".sqlite_store": "SqliteStore",
        },
    )
