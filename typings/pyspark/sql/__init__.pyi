from typing import Any

class SparkSession:
    builder: Any
    readStream: Any
    read: Any
    def stop(self) -> None: ...
