from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

class Celery:
    def __init__(
        self, main: str | None = ..., *, broker: str | None = ..., backend: str | None = ...
    ) -> None: ...
    def task(self, function: _F, /) -> _F: ...
