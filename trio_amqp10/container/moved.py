"""Attributes of ``Container`` that are attributes of its ``amqp10`` now: they work for one more release, with a warning."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .service import Container

__all__ = ["Moved"]


class Moved:
    """A deprecated attribute of ``Container``: reads and sets that of the same name of ``container.amqp10``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, container: Container, owner: type) -> Any:
        self._warn()
        return getattr(container.amqp10, self._name)

    def __set__(self, container: Container, value: Any) -> None:
        self._warn()
        setattr(container.amqp10, self._name, value)

    def _warn(self) -> None:
        warnings.warn(
            f"Container.{self._name} is Container.amqp10.{self._name} now", DeprecationWarning, stacklevel=3
        )
