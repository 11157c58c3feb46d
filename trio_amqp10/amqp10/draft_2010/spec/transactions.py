"""The types of Book V of the draft of 2010: coordinator and commands (2).

Declarations only. Codes and fields are chosen by analogy, because no source has them.
"""

from typing import Annotated, Any, TypeAlias

from trio_amqp10.amqp10.draft_2010.field_types import Options
from trio_amqp10.amqp10.wire.composite import composite
from trio_amqp10.amqp10.wire.fields import archetype, boolean

from .transport import DOMAIN, Symbols

AnyType: TypeAlias = Annotated[Any, archetype("*", "*")]


@composite("amqp:coordinator:list", DOMAIN | 0x300, provides=["target"])
class Coordinator:
    """The target of a link that controls transactions (2.1)."""

    options: Options | None = None
    capabilities: Symbols = ()


@composite("amqp:declare:list", DOMAIN | 0x301)
class Declare:
    """A request for a transaction (2.2)."""

    options: Options | None = None
    global_id: AnyType | None = None


@composite("amqp:discharge:list", DOMAIN | 0x302)
class Discharge:
    """A request to end the transaction in the state of its transfer (2.3)."""

    options: Options | None = None
    fail: boolean | None = None
