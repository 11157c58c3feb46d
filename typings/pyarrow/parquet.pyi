from typing import BinaryIO

from . import Table

def write_table(table: Table, where: BinaryIO) -> None: ...
