"""A request of the API: its decoded path, its virtual host, its client.

Knows requests and names; knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import unquote_to_bytes

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.http.access import IDENTITY, MANAGEMENT
from trio_amqp10.http.errors import RequestError

from .bodies import bad, read_object
from .shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request

    from trio_amqp10.container.management import ContainerStatus, Management, Survey
    from trio_amqp10.sasl import Identity

T = TypeVar("T")

_LONGEST: Final = 255
"""Octets of a name at most (0-9-1, 4.2.5.3)."""
_DEFAULT_EXCHANGE: Final = "amq.default"


def not_found() -> RequestError:
    """Return the error for a thing that does not exist, or may not be seen."""
    return RequestError(404, "Object Not Found", "not found")


class Call:
    """One request.

    Args:
        request: the request.
        most: octets of its body at most.

    Attributes:
        request: as given.
        management: the management on behalf of the client.
        identity: the client; None for one without a name.
        shapes: the objects of the virtual host that the path names, or else of the first one.
    """

    __slots__ = ("_most", "_names", "identity", "management", "request", "shapes")

    def __init__(self, request: Request, most: int) -> None:
        self.request: Request = request
        self.management: Management = getattr(request.state, MANAGEMENT)
        self.identity: Identity | None = getattr(request.state, IDENTITY)
        self._most = most
        self._names = {name: _decoded(name, part) for name, part in request.path_params.items()}
        self.shapes: Shapes = Shapes(self.management.container_name, "/")

    async def begin(self) -> None:
        """Find the virtual host.

        Raises:
            RequestError: 404, there is no such virtual host.
        """
        hosts = self.management.host_names
        asked = self._names.get("vhost")
        if asked is not None and asked not in hosts:
            raise not_found()
        self.shapes = Shapes(self.management.container_name, hosts[0] if asked is None else asked)

    @property
    def vhost(self) -> str:
        """The name of the virtual host."""
        return self.shapes.vhost

    def name(self, part: str) -> str:
        """Return a part of the path, decoded."""
        return self._names[part]

    def exchange(self, part: str) -> str:
        """Return the exchange that a part of the path names.

        The default one is ``amq.default``.
        """
        name = self._names[part]
        return "" if name == _DEFAULT_EXCHANGE else name

    def destination(self) -> tuple[Literal["queue", "exchange"], str]:
        """Return the kind and the name of the destination of a binding.

        Raises:
            RequestError: 404, there is no such kind.
        """
        kind = self._names["kind"]
        if kind == "q":
            return "queue", self._names["destination"]
        if kind == "e":
            return "exchange", self.exchange("destination")
        raise not_found()

    def shapes_of(self, vhost: str) -> Shapes:
        """Return the objects of another virtual host."""
        return Shapes(self.shapes.node, vhost)

    async def may_watch(self, kind: str) -> bool:
        """Whether the client may see things of a kind, such as connections.

        Cancelled: the answer is not known.
        """
        return await self.management.may_watch(kind)

    async def container(self) -> ContainerStatus:
        """Return the status of the container, without the totals of its connections.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        return (await self.management.containers().page()).items[0]

    async def survey(self) -> Survey | None:
        """Return the figures of the container; None if the client may not see them.

        Cancelled: nothing has changed.
        """
        return await optional(self.management.survey())

    def tags_of_all(self) -> list[str]:
        """Return the tags of every user: with rights, none is an administrator as such."""
        return ["management"] if self.management.limited else ["administrator"]

    async def body(self) -> dict[str, Any]:
        """Return the object in the body; see ``read_object``."""
        return await read_object(self.request, self._most)

    def flag(self, name: str) -> bool:
        """Whether the query has this flag.

        Raises:
            RequestError: 400, its value is neither true nor false.
        """
        value = self.request.query_params.get(name, "false")
        if value not in ("true", "false"):
            raise bad(f"{name}={value[:64]!r}: expected true or false")
        return value == "true"


def _decoded(name: str, part: str) -> str:
    """Return a part of a path, percent-decoded.

    Raises:
        RequestError: 400, its encoding is not valid, or it is longer than a name.
    """
    octets = unquote_to_bytes(part)
    if part.count("%") != sum(
        1 for at in range(len(part)) if part[at] == "%" and _is_hex(part[at + 1 : at + 3])
    ):
        raise bad(f"the path: {part[:64]!r} has a % without two hexadecimal digits")
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        raise bad(f"the path: {part[:64]!r} is not UTF-8") from None
    if len(octets) > _LONGEST * (4 if name in ("connection", "channel", "properties") else 1):
        raise bad(f"the path: a name of {len(octets)} octets: at most {_LONGEST}")
    return text


def _is_hex(text: str) -> bool:
    return len(text) == 2 and all(each in "0123456789abcdefABCDEF" for each in text)


async def optional(question: Awaitable[T]) -> T | None:
    """Return the answer to a question about one thing.

    None if it does not exist, or may not be seen. Cancelled: nothing has changed.
    """
    try:
        return await question
    except ManagementError as fault:
        if fault.reason in ("not-found", "forbidden"):
            return None
        raise
