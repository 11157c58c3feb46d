"""``/metrics``: the figures of a container for Prometheus.

The text is OpenMetrics, or the older format of Prometheus, as the reader asks. The figures are those of ``container.management.figures``. However many queues there are, only some have values of their own. The
text is written in pieces, between which other tasks run.

Knows management and the text format of Prometheus; has no figure of its own but those of the process.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from prometheus_client import Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response
from starlette.routing import Route

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.container.management.figures import FIGURES
from trio_amqp10.container.management.pace import Pace
from trio_amqp10.container.management.survey import matching
from trio_amqp10.core.version import __version__

from .access import IDENTITY, error_response
from .errors import refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from starlette.requests import Request

    from trio_amqp10.container.management import Management, Survey
    from trio_amqp10.container.management.figures import Figure, Reading

_AT_ONCE: Final = 25
"""Values that are written in one piece: about a third of a millisecond."""
_END: Final = b"# EOF\n"
_BUILD: Final = "amqp10_build"
_OF_RABBITMQ: Final = frozenset(
    {"process_resident_memory_bytes", "process_open_fds", "process_max_fds"},
)
"""Figures of the process that RabbitMQ has too, under a name of its own."""

NAMES: Final = frozenset(
    {
        f"{figure.prometheus}_total" if figure.kind == "counter" else figure.prometheus
        for figure in FIGURES
        if figure.prometheus is not None
    }
    | {f"rabbitmq_{name}" for name in _OF_RABBITMQ}
    | {"process_cpu_seconds_total", "process_start_time_seconds", "process_virtual_memory_bytes"}
    | {f"{_BUILD}_info"}
)
"""The names of all values that may be in an answer."""


def routes(
    management_for: Callable[[Request], Awaitable[Management]], *, queues: Sequence[str] = ()
) -> list[Route]:
    """Return the route of ``/metrics``.

    Args:
        management_for: returns the management on behalf of the user of a request; it may raise an ``HTTPException``.
        queues: patterns of queues that have values of their own, with ``*``, ``?`` and ``[...]``, e.g. ``"orders*"``; at most
            ``MOST_QUEUES`` of them do. All other queues are added up.
    """
    named = matching(queues)

    async def metrics(request: Request) -> Response:
        try:
            management = await management_for(request)
            survey = await management.survey(named)
            virtual_host = await _virtual_host(management)
        except ManagementError as fault:
            return error_response(refused(fault, getattr(request.state, IDENTITY, None)))
        # Any other format would escape names in other ways; these names need none.
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        body = await expose(survey, virtual_host, encode)
        return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})

    return [Route("/metrics", metrics, methods=["GET"])]


async def expose(survey: Survey, virtual_host: str, encode: Callable[[_Families], bytes]) -> bytes:
    """Return the text of all figures.

    Args:
        survey: the figures.
        virtual_host: the label ``vhost`` of queues.
        encode: writes families; of ``prometheus_client``.

    Cancelled: nothing has changed.
    """
    pace, pieces = Pace(), list[bytes]()
    for families in _all_families(survey, virtual_host):
        for number, family in enumerate(families):
            text = encode(_Families(family)).removesuffix(_END)
            while number and text.startswith(b"# "):  # The head of the family is there already.
                text = text.partition(b"\n")[2]
            pieces.append(text)
            await pace.pause()
    if encode(_Families()):  # OpenMetrics has an end, the older format has none.
        pieces.append(_END)
    return b"".join(pieces)


class _Families:
    """A registry, for encoders: it has these families."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return the families."""
        return self._families


def _all_families(survey: Survey, virtual_host: str) -> Iterator[Iterator[Metric]]:
    """Yield each family in parts of at most ``_AT_ONCE`` values."""
    build = GaugeMetricFamily(f"{_BUILD}_info", "Version of this library.", labels=["version", "container"])
    build.add_metric([__version__, _valid(survey.container.name)], 1)
    yield iter([build])
    for figure in FIGURES:
        if figure.prometheus is not None:
            yield _parts(figure, iter(figure.read(survey)), virtual_host)
    for family in ProcessCollector(registry=None).collect():
        if family.name in _OF_RABBITMQ:
            family.name = f"rabbitmq_{family.name}"
            family.samples = [each._replace(name=f"rabbitmq_{each.name}") for each in family.samples]
        yield iter([family])


def _parts(figure: Figure, readings: Iterator[Reading], virtual_host: str) -> Iterator[Metric]:
    assert figure.prometheus is not None
    made = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
    suffix = "_total" if figure.kind == "counter" else ""
    while some := list(islice(readings, _AT_ONCE)):
        family = made(figure.prometheus, figure.description)
        for labels, value in some:
            family.add_sample(f"{figure.prometheus}{suffix}", _labels(labels, virtual_host), value)
        yield family


def _labels(labels: Mapping[str, str], virtual_host: str) -> dict[str, str]:
    if "queue" not in labels:
        return dict(labels)
    return {**labels, "queue": _valid(labels["queue"]), "vhost": virtual_host}


def _valid(name: str) -> str:
    """Return a name as UTF-8 can have it: one queue must not spoil the text of all."""
    return name.encode(errors="replace").decode()


async def _virtual_host(management: Management) -> str:
    try:
        async for host in management.virtual_hosts():
            return host.name
    except ManagementError:  # It may see figures, but no names.
        pass
    return "/"
