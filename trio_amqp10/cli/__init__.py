"""The ``amqp10`` command: results on stdout, everything else on stderr.

Needs the extra ``[cli]``, and says so where it is missing. Nothing imports this package.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, and end the process.

    Exit codes: 0 only if all that was asked for happened; 2 for a command line that cannot be
    understood, or a missing extra; 130 where an interrupt kept it from being done; 1 for the rest.
    """
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"amqp10 needs {' and '.join(missing)}; install them with: pip install 'trio-amqp10[cli]'\n"
        )
        sys.exit(2)
    try:
        from .commands import amqp10

        amqp10(prog_name="amqp10")
    except KeyboardInterrupt:  # while modules are imported; a command that runs has its own answer
        sys.stderr.write("amqp10: interrupted\n")
        sys.exit(130)
