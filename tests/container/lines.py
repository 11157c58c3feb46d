"""A form of content that is not AMQP 1.0's.

It is text: a head of lines ``key=value``, an empty line, and the body.

It is what a protocol would bring to the container, and serves to show that nodes and stores need no other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10 import Message
from trio_amqp10.broker.nodes import form_registry
from trio_amqp10.broker.nodes.content import Content, Terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.broker.nodes.content import Death, Publication

NUMBER = -70
"""Of the form."""


class Lines(Content):
    """Text lines; ``translations`` counts how many were translated to AMQP 1.0."""

    __slots__ = ("body", "head")

    translations = 0

    def __init__(self, octets: bytes) -> None:
        top, _, self.body = octets.decode().partition("\n\n")
        self.head = dict(line.split("=", 1) for line in top.splitlines())
        number = {name: int(self.head[name]) if name in self.head else None for name in ("ttl", "expiry")}
        terms = Terms(
            int(self.head.get("priority", 4)), number["ttl"], number["expiry"], self.head.get("group")
        )
        super().__init__(NUMBER, octets, terms, durable="durable" in self.head)

    @property
    def to(self) -> str | None:
        return self.head.get("to")

    def changed(self, **head: Any) -> Lines:
        """With other lines in its head; None removes one."""
        return lines(self.body, **{**self.head, **head})

    def aged(self, left: int) -> Content:
        return self.changed(ttl=left)

    def acquired(self, *, failed: bool = False, annotations: Mapping[Any, Any] | None = None) -> Content:
        notes = {f"note-{key}": value for key, value in (annotations or {}).items()}
        if failed:
            notes["attempts"] = int(self.head.get("attempts", 0)) + 1
        return self.changed(**notes) if notes else self

    def dead(
        self,
        source: str,
        reason: Death,
        now: float,
        publication: Publication | None = None,
        condition: str | None = None,
        description: str | None = None,
    ) -> Content:
        why = {"from": source, "dead": reason, "why": condition, "said": description}
        return self.changed(ttl=None, expiry=None, **why)

    def translated(self) -> bytes:
        type(self).translations += 1
        head: dict[str, Any] = {key: value for key, value in self.head.items() if key != "durable"}
        return Message(self.body, durable=self.durable, application_properties=head).to_payload()


class Ends:
    """A selection of this form: those whose body ends so."""

    number = NUMBER

    def __init__(self, end: str) -> None:
        self.end = end

    def to_octets(self) -> bytes:
        return self.end.encode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ends) and self.end == other.end

    __hash__ = None  # type: ignore[assignment]

    def passes(self, content: Any, _origin: str | None) -> bool:
        return bool(content.as_message().body.endswith(self.end))


def lines(body: str, **head: Any) -> Lines:
    """The content with this body, and what is not None of this head."""
    top = "".join(f"{key}={value}\n" for key, value in head.items() if value is not None)
    return Lines(f"{top}\n{body}".encode() if top else f"\n\n{body}".encode())


def _select(octets: bytes, _owner: Any) -> tuple[Ends, Any]:
    ends = Ends(octets.decode())
    return ends, ends.passes


def registered() -> Iterator[None]:
    """The form is known while a test runs."""
    Lines.translations = 0
    form_registry.register(NUMBER, form_registry.Form(Lines, _select))
    yield
    form_registry.forget(NUMBER)
