"""Instruments for the content of containers: queues, messages, the store.

The figures are those of ``container.management.figures``. Of a queue without a pattern there is no value of its own, so that the
number of values stays small.

Knows containers by their management; ``metrics`` has the sums over connections.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.metrics import CallbackOptions, Observation

from trio_amqp10.container.management.figures import FIGURES
from trio_amqp10.container.management.survey import MOST_QUEUES, matching, survey

from .collection import Collection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opentelemetry.metrics import Meter

    from trio_amqp10.container.container import Container
    from trio_amqp10.container.management import Survey
    from trio_amqp10.container.management.figures import Figure

_ATTEMPTS: Final = 10
_ATTRIBUTES: Final[Mapping[str, str]] = {
    "queue": "messaging.destination.name",
    "protocol": "amqp10.protocol",
    "role": "amqp10.link.role",
    "reason": "amqp10.death.reason",
    "quota": "amqp10.quota",
    "rule": "amqp10.rule",
}
"""The attribute for each label of a figure."""


class ContainerFigures:
    """Instruments that read surveys of containers at each collection.

    Args:
        meter: makes the instruments.
        attributes: attributes of each value.
        queues: patterns of queues that have values of their own; all other queues are added up.
    """

    def __init__(self, meter: Meter, attributes: Mapping[str, Any], queues: Sequence[str]) -> None:
        self._attributes = attributes
        self._named = matching(queues) or _none
        self._containers: dict[Container, Collection[Survey]] = {}
        for figure in FIGURES:
            if figure.opentelemetry is not None:
                create = {
                    "counter": meter.create_observable_counter,
                    "gauge": meter.create_observable_gauge,
                }[figure.kind]
                create(figure.opentelemetry, [self._reading(figure)], figure.unit, figure.description)

    def watch(self, container: Container) -> None:
        """Read this container too."""
        self._containers.setdefault(container, Collection(partial(_look, container, self._named)))

    def forget(self, container: Container) -> None:
        """Read this container no more."""
        self._containers.pop(container, None)

    def _reading(self, figure: Figure) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_: CallbackOptions) -> list[Observation]:
            found: list[Observation] = []
            for container, surveys in list(self._containers.items()):
                common = {**self._attributes, "amqp10.container.id": container.name}
                for labels, value in figure.read(surveys.reading_for(figure)):
                    named = {_ATTRIBUTES[label]: text for label, text in labels.items()}
                    found.append(Observation(value, {**common, **named}))
            return found

        return read


def _look(container: Container, named: Callable[[str], bool]) -> Survey:
    """Take a survey; if the container changes meanwhile, in another thread, try again."""
    for _ in range(_ATTEMPTS - 1):
        with suppress(RuntimeError):  # a dict changed its size during iteration
            return _survey_now(container, named)
    return _survey_now(container, named)


def _survey_now(container: Container, named: Callable[[str], bool]) -> Survey:
    steps = survey(container, named, MOST_QUEUES)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Survey = done.value
            return found


def _none(_address: str) -> bool:
    return False
