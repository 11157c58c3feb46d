from typing import Any

from . import functions as functions

class SparkSession:
    builder: Any
    readStream: Any
    read: Any
    streams: Any
    def stop(self) -> None: ...
