"""Options of a server of 10.3, and callbacks of its program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp091.server.server_habits import Habits

from .staged_files import StagedFiles
from .tickets import Realms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method

    from .branch import Branch


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Habits):
    """The options of ``Amqp103``; see there."""

    tickets: bool = True
    queue_arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    grace: float = 60.0
    redirect: Callable[[str, bool], tuple[str, str] | None] | None = None
    on_tunnel: Callable[[Any, Mapping[str, Any], Content], object] | None = None
    on_cluster: Callable[[Any, Method], object] | None = None
    on_branch: Callable[[Branch], object] | None = None
    realms: Realms = field(default_factory=Realms)
    files: StagedFiles = field(default_factory=StagedFiles)
