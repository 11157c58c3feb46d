"""Octets that once went wrong, or well might: one file each, with a line that tells their story."""

from __future__ import annotations

import hashlib
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
_WIDTH = 96


def load(file: Path) -> tuple[str, bytes]:
    """The target and the octets of a file; lines that begin with # are its story."""
    lines = file.read_text().splitlines()
    octets = "".join(line for line in lines if not line.startswith("#"))
    return file.stem.rpartition("-")[0], bytes.fromhex(octets)


def store(target: str, octets: bytes, story: str) -> Path:
    """Write a file; the same octets for the same target are one file."""
    digest = hashlib.sha256(octets).hexdigest()
    file = CORPUS / f"{target}-{digest[:8]}.hex"
    digits = octets.hex()
    lines = [digits[at : at + _WIDTH] for at in range(0, len(digits), _WIDTH)]
    CORPUS.mkdir(exist_ok=True)
    file.write_text("\n".join([f"# {' '.join(story.split())}", *lines, ""]))
    return file
