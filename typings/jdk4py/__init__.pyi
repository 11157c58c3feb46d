from pathlib import Path

JAVA: Path
