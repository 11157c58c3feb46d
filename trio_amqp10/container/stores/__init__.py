"""Where a container keeps what must outlive it: a file of SQLite's, or memory that a test holds on to."""

from .base import Store as Store
from .base import StoreError as StoreError
from .base import StoreFullError as StoreFullError
from .base import Table as Table
from .journal import Journal as Journal
from .memory import MemoryStore as MemoryStore
from .sqlite import SqliteStore as SqliteStore
