from typing import Any

class Connection:
    def __init__(self, hostname: str = ..., **options: Any) -> None: ...
