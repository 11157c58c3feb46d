"""``python -m trio_amqp10`` is the ``amqp10`` command."""

from .tools.cli import main

if __name__ == "__main__":
    main()
