"""A row as text: its figures by who and what, with their spread, and its gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .registry import Row


def figure(value: float) -> str:
    """With three digits or so."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def columns(figures: dict[str, dict[str, Any]]) -> list[str]:
    """What is measured, in order."""
    found: dict[str, None] = {}
    for ones in figures.values():
        found |= dict.fromkeys(ones)
    return list(found)


def gate_line(gate: dict[str, Any]) -> str:
    """A gate in one line."""
    verdict = "met" if gate["met"] else "NOT MET"
    spread = f"{figure(gate['least'])} to {figure(gate['most'])}"
    return (
        f"{gate['says']}: {figure(gate['value'])} ({spread}), {gate['wanted']} {gate['bound']:g}: {verdict}"
    )


def shown(row: Row, found: dict[str, Any]) -> str:
    """The row as lines."""
    what = columns(found["figures"])
    wall = "; wall time, for a quiet machine" if row.quiet else ""
    load = f"load {found['load'][0]}"
    lines = [
        f"\n{row.name}: {row.about}",
        f"    {found['rounds']} rounds in {found['seconds']:.0f} s, {load}{wall}",
    ]
    width = max(map(len, found["figures"])) + 2
    widths = [max(len(each), 26) + 2 for each in what]
    lines.append(
        " " * (width + 4) + "".join(f"{name:>{size}}" for name, size in zip(what, widths, strict=True))
    )
    for who, ones in found["figures"].items():
        cells = [_cell(ones.get(each)) for each in what]
        lines.append(
            f"    {who:{width}}"
            + "".join(f"{cell:>{size}}" for cell, size in zip(cells, widths, strict=True))
        )
    lines += [
        f"    {name}: {value:+.3g} with each tenfold of {row.curve}"
        for name, value in found["slopes"].items()
    ]
    return "\n".join([*lines, *(f"    {gate_line(gate)}" for gate in found["gates"])])


def _cell(spread: dict[str, float] | None) -> str:
    if spread is None:
        return ""
    return f"{figure(spread['median'])} ({figure(spread['least'])} to {figure(spread['most'])})"
