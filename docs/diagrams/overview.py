"""The picture of the first page: who connects to whom."""

from __future__ import annotations

from .drawing import Drawing

__all__ = ["draw"]


def draw(theme: str) -> str:
    """The SVG."""
    drawing = Drawing(700, 330, "What talks to what", theme)
    rows = (
        (55.0, ["client", "open_connection"], ["broker", "RabbitMQ 4, Artemis, Azure"], 0),
        (165.0, ["client", "open_connection"], ["service", "Container, serve"], 0),
        (275.0, ["test", "open_container"], ["container", "in the same process"], 3),
    )
    for y, left, right, colour in rows:
        drawing.arrow([(201, y - 8), (474, y - 8)], colour=0)
        drawing.arrow([(474, y + 10), (201, y + 10)], colour=1)
        drawing.box((110, y), (180, 58), left, colour=colour)
        drawing.box((580, y), (210, 58), right, colour="ink" if right[0] == "broker" else colour)
    drawing.words((335, 22), "a link each way, over one connection", size=13)
    for y, words in (
        (55, "TCP, TLS, WebSocket"),
        (165, "no broker between them"),
        (275, "memory: no socket"),
    ):
        drawing.words((335, y + 28), words, size=13)
    return drawing.text()
