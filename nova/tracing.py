"""Tracing: time spent in the parts of a request, for each service (W3C Trace Context, OpenTelemetry).

The trace id is the request id without its dashes, unless the caller sent a ``traceparent``; so it can be found from a
log line. If export is off, no spans are created, and the caller's header is forwarded.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nova import context, errors, failures
from nova.conf._options import Options
from nova.model.base import Library

if TYPE_CHECKING:
    import datetime

    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span

LOG = logging.getLogger(__name__)

HEADER = "traceparent"
SERVER, CLIENT, INTERNAL = "SERVER", "CLIENT", "INTERNAL"  # opentelemetry.trace.SpanKind
_FORM = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")

Attributes = dict[str, str | int | float | bool]


class Place(NamedTuple):
    """A span and its trace, as 16 and 32 hexadecimal digits. Empty ``span``: the trace's root."""

    trace: str
    span: str = ""

    @property
    def header(self) -> str:
        """Value of ``traceparent``; always *sampled*, since each exporter decides by the trace id."""
        return f"00-{self.trace}-{self.span}-01"


def valid(header: str | None) -> str | None:
    """Return the header if it is valid: clients choose it, and it is copied to logs and to requests to other
    services."""
    return header if header and _FORM.fullmatch(header) else None


def place_of(who: context.RequestContext) -> Place:
    """Return the place of a request: below its caller's span, or at the root of its own trace."""
    found = _FORM.fullmatch(who.traceparent or "")
    return Place(found[1], found[2]) if found else Place(trace_of(who.request_id))


def trace_of(request_id: str) -> str:
    """Return the trace id of a request whose caller sent none."""
    digits = request_id.removeprefix("req-").replace("-", "").lower()
    if re.fullmatch(r"(?!0{32})[0-9a-f]{32}", digits):
        return digits
    return hashlib.sha256(digits.encode()).hexdigest()[:32]


def span_of(*words: object) -> str:
    """Return a span id that several processes can compute without communication."""
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:16]


def headers() -> dict[str, str]:
    """Return the tracing headers of a request to another service, if any."""
    serving = context.current_or_none()
    return {HEADER: serving.traceparent} if serving and serving.traceparent else {}


class Exporter:
    """Tracer of opentelemetry-sdk. ``processor`` receives the spans in place of the collector. Raises ImportError."""

    def __init__(self, options: Options, binary: str, release: str, processor: SpanProcessor | None = None) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

        class Ids(RandomIdGenerator):
            def generate_span_id(self) -> int:
                """Return the chosen span id, or a random one."""
                return _next_span.get() or super().generate_span_id()

            def generate_trace_id(self) -> int:
                """Return the chosen trace id, or a random one."""
                return _next_trace.get() or super().generate_trace_id()

        class Part(Sampler):
            """Sampler that uses the whole id: the library's uses 64 bits, of which a uuid has two fixed."""

            def should_sample(self, parent_context: object, trace_id: int, *_: object, **__: object) -> SamplingResult:
                """Return the decision, which is the same in every process."""
                chosen = int(span_of(trace_id), 16) < options.tracing.sample_ratio * 2**64
                return SamplingResult(Decision.RECORD_AND_SAMPLE if chosen else Decision.DROP)

            def get_description(self) -> str:
                """Return a description for the library's own notes."""
                return f"a part of {options.tracing.sample_ratio} of all requests"

        self._api = trace
        self.provider = TracerProvider(
            sampler=Part(), id_generator=Ids(),
            resource=Resource.create({"service.name": binary, "service.version": release, "host.name": options.host}))
        self.provider.add_span_processor(
            processor or BatchSpanProcessor(OTLPSpanExporter(endpoint=options.tracing.otlp_endpoint)))
        self._tracer = self.provider.get_tracer("nova")

    def start(self, name: str, kind: str, parent: Place, own: str = "", began_ns: int | None = None) -> Span:
        """Start a span below ``parent``. ``own``: its id, if already chosen."""
        api = self._api
        above = api.set_span_in_context(api.NonRecordingSpan(api.SpanContext(
            int(parent.trace, 16), int(parent.span, 16), is_remote=True, trace_flags=api.TraceFlags(1)))
        ) if parent.span else None
        with _given(_next_trace, parent.trace), _given(_next_span, own):
            return self._tracer.start_span(name, context=above, kind=api.SpanKind[kind], start_time=began_ns)

    def failed(self, span: Span, words: str) -> None:
        """Mark the span as failed."""
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, words))


_exporter: Exporter | None = None
_next_span: ContextVar[int] = ContextVar("nova_next_span", default=0)
_next_trace: ContextVar[int] = ContextVar("nova_next_trace", default=0)


@contextlib.contextmanager
def _given(variable: ContextVar[int], digits: str) -> Iterator[None]:
    token = variable.set(int(digits or "0", 16))
    try:
        yield
    finally:
        variable.reset(token)


def use(exporter: Exporter | None) -> None:
    """Set the exporter of this process's spans; None: no spans."""
    global _exporter
    _exporter = exporter


def export(options: Options, binary: str, release: str) -> None:
    """Start to export spans if ``[tracing]`` configures it. A missing package is only a warning: requests are served
    anyway."""
    if not options.tracing.otlp_endpoint:
        return
    with failures.best_effort(LOG, "Tracing is off, as a package is missing: %s. Install nova's extra 'tracing'",
            on=ImportError):
        use(Exporter(options, binary, release))


def flush() -> None:
    """Send all unsent spans, within a few seconds at most, at the process's end."""
    if _exporter is not None:
        _exporter.provider.shutdown()


@contextlib.contextmanager
def span(name: str, kind: str = INTERNAL, **attributes: str | int) -> Iterator[Attributes]:
    """Run the block as a span below the current one, and as the parent of requests sent within it. The caller may add
    attributes until its end; ``name`` among them is the span's name."""
    found: Attributes = dict(attributes)
    if _exporter is None:
        yield found
        return
    who = context.current()
    parent = place_of(who)
    made = _exporter.start(name, kind, parent)
    own = Place(parent.trace, format(made.get_span_context().span_id, "016x"))
    failed = functools.partial(_failed, _exporter, made)
    try:
        with failures.reported_to(failed, on=BaseException), \
                context.entered(msgspec.structs.replace(who, traceparent=own.header)):
            yield found
    finally:
        made.update_name(str(found.pop("name", name)))
        made.set_attributes({**found, "nova.request_id": who.request_id})
        made.end()


def _failed(exporter: Exporter, made: Library, error: BaseException) -> None:
    exporter.failed(made, error.code if isinstance(error, errors.NovaError) else type(error).__name__)


@contextlib.contextmanager
def below(place: Place) -> Iterator[None]:
    """Run the block with this span as the parent of its spans and requests. :func:`note` exports the span later."""
    if _exporter is None:
        yield
        return
    with context.entered(msgspec.structs.replace(context.current(), traceparent=place.header)):
        yield


class Ended(NamedTuple):
    """A span whose times are known from the journal. ``failure``: error of a failed span, otherwise empty."""

    name: str
    parent: Place
    own: str
    began: datetime.datetime
    ended: datetime.datetime
    failure: str = ""


def note(done: Ended, **attributes: str | int | None) -> None:
    """Export the span. Times are UTC without a zone."""
    if _exporter is None:
        return
    made = _exporter.start(done.name, INTERNAL, done.parent, done.own, _ns(done.began))
    made.set_attributes({name: value for name, value in attributes.items() if value is not None})
    if done.failure:
        _exporter.failed(made, done.failure)
    made.end(_ns(done.ended))


def _ns(at: datetime.datetime) -> int:
    import calendar

    return calendar.timegm(at.timetuple()) * 10**9 + at.microsecond * 1000
