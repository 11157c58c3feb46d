from collections.abc import Callable
from typing import Any

section_readers: tuple[
    Callable[[bytes, int, int], Any], Callable[[bytes, int, int], Any], Callable[[bytes, int, int], Any]
]

def usual_spans(payload: bytes) -> list[tuple[int, int] | None] | None: ...
