"""The types of Book V of the draft of 2010: the coordinator and what is said to it (2). Declarations only.

Codes and fields are by analogy: no source has them.
"""

from typing import Annotated, Any, TypeAlias

from trio_amqp10.draft_2010.fields import Options
from trio_amqp10.wire.composite import composite
from trio_amqp10.wire.fields import archetype, boolean

from .transport import DOMAIN, Symbols

__all__ = ["Coordinator", "Declare", "Discharge"]

AnyType: TypeAlias = Annotated[Any, archetype("*", "*")]


@composite("amqp:coordinator:list", DOMAIN | 0x300, provides=["target"])
class Coordinator:
    """The target of a link that controls transactions (2.1)."""

    options: Options | None = None
    capabilities: Symbols = ()


@composite("amqp:declare:list", DOMAIN | 0x301)
class Declare:
    """Asks for a transaction (2.2)."""

    options: Options | None = None
    global_id: AnyType | None = None


@composite("amqp:discharge:list", DOMAIN | 0x302)
class Discharge:
    """Asks to end the transaction that the state of its own transfer names (2.3)."""

    options: Options | None = None
    fail: boolean | None = None
