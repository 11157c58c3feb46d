"""``python -m tests.messages``: write the page of error messages, and print each message that breaks a rule of their form.

``--list`` prints every message with its place, and writes nothing. The exit code is 1 if a rule is broken.
"""

from __future__ import annotations

import sys

from .collect import messages
from .form import faults_in
from .page import PAGE, text_of


def main(arguments: list[str]) -> int:
    """Write the page, print the faults, and return the exit code."""
    if arguments == ["--list"]:
        for message in messages():
            print(f"{message.path}:{message.line}: {message.kind}: {message.shown}")
        return 0
    PAGE.write_text(text_of())
    faults = [
        f"{message.path}:{message.line}: {rule}\n    {message.kind}: {message.shown}"
        for message in messages()
        for rule in faults_in(message)
    ]
    print(*faults, f"{len(faults)} faults in {len(messages())} messages", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
