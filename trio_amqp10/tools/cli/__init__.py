"""The ``amqp10`` command: results on stdout, everything else on stderr.

Needs the extra ``[cli]``, and reports on stderr if the extra is missing. No other package imports this one.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process, and end the process.

    Exit codes: 0 only if everything that the user requested was done; 2 for a wrong command line or a
    missing extra; 130 for an interrupt before the end; 1 for any other failure.
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
    except (
        KeyboardInterrupt
    ):  # an interrupt during the imports; a running command handles its own (see ``Interrupts``)
        sys.stderr.write("amqp10: interrupted\n")
        sys.exit(130)
