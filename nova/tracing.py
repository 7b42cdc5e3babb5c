"""Spans: which part of a request took how long, in which daemon (W3C Trace Context, OpenTelemetry).

The trace's id is the request's own id without its dashes, unless the caller brought a ``traceparent``; so is it found
again from a log line. Where nothing is exported nothing is made, and what a caller brought is passed on.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from nova import context, errors
from nova.conf.base import Options

if TYPE_CHECKING:
    import datetime

LOG = logging.getLogger(__name__)

HEADER = "traceparent"
SERVER, CLIENT, INTERNAL = "SERVER", "CLIENT", "INTERNAL"  # opentelemetry.trace.SpanKind
_FORM = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")

Attributes = dict[str, str | int | float | bool]


class Place(NamedTuple):
    """A span in its trace, both as hexadecimal digits: 32 and 16. No ``span``: the trace's root."""

    trace: str
    span: str = ""

    @property
    def header(self) -> str:
        """As ``traceparent``; always *sampled*: who exports decides that by the trace's id."""
        return f"00-{self.trace}-{self.span}-01"


def valid(header: str | None) -> str | None:
    """The header, where it is one: others choose it, and it goes into logs and other services' requests."""
    return header if header and _FORM.fullmatch(header) else None


def place_of(who: context.RequestContext) -> Place:
    """Where the request stands: below its caller's span, or at the root of a trace of its own."""
    found = _FORM.fullmatch(who.traceparent or "")
    return Place(found[1], found[2]) if found else Place(trace_of(who.request_id))


def trace_of(request_id: str) -> str:
    """The trace's id of a request whose caller brought none."""
    digits = request_id.removeprefix("req-").replace("-", "").lower()
    if re.fullmatch(r"(?!0{32})[0-9a-f]{32}", digits):
        return digits
    return hashlib.sha256(digits.encode()).hexdigest()[:32]


def span_of(*words: object) -> str:
    """The id of a span that several processes must know without telling each other."""
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:16]


def headers() -> dict[str, str]:
    """What a request to another service carries, where there is anything to carry."""
    serving = context.current_or_none()
    return {HEADER: serving.traceparent} if serving and serving.traceparent else {}


class Exporter:
    """A tracer of opentelemetry-sdk. ``processor``: what takes the spans, another than the collector. ImportError."""

    def __init__(self, options: Options, binary: str, release: str, processor: Any = None) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

        class Ids(RandomIdGenerator):
            def generate_span_id(self) -> int:
                """The one that was chosen, or one by chance."""
                return _next_span.get() or super().generate_span_id()

            def generate_trace_id(self) -> int:
                """Likewise."""
                return _next_trace.get() or super().generate_trace_id()

        class Part(Sampler):
            """By all of the id: the library's looks at 64 bits of it, of which a uuid has two fixed."""

            def should_sample(self, parent_context: object, trace_id: int, *_: object, **__: object) -> SamplingResult:
                """The same answer in every process."""
                chosen = int(span_of(trace_id), 16) < options.tracing.sample_ratio * 2**64
                return SamplingResult(Decision.RECORD_AND_SAMPLE if chosen else Decision.DROP)

            def get_description(self) -> str:
                """For the library's own notes."""
                return f"a part of {options.tracing.sample_ratio} of all requests"

        self._api = trace
        self.provider = TracerProvider(
            sampler=Part(), id_generator=Ids(),
            resource=Resource.create({"service.name": binary, "service.version": release, "host.name": options.host}))
        self.provider.add_span_processor(
            processor or BatchSpanProcessor(OTLPSpanExporter(endpoint=options.tracing.otlp_endpoint)))
        self._tracer = self.provider.get_tracer("nova")

    def start(self, name: str, kind: str, parent: Place, own: str = "", began_ns: int | None = None) -> Any:
        """A span below ``parent``. ``own``: its id, where that was chosen."""
        api = self._api
        above = api.set_span_in_context(api.NonRecordingSpan(api.SpanContext(
            int(parent.trace, 16), int(parent.span, 16), is_remote=True, trace_flags=api.TraceFlags(1)))
        ) if parent.span else None
        with _given(_next_trace, parent.trace), _given(_next_span, own):
            return self._tracer.start_span(name, context=above, kind=api.SpanKind[kind], start_time=began_ns)

    def failed(self, span: Any, words: str) -> None:
        """Mark the span as an error's."""
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
    """Spans of this process go there; None: there are none."""
    global _exporter
    _exporter = exporter


def export(options: Options, binary: str, release: str) -> None:
    """From now on this process exports spans, where ``[tracing]`` says so. A package that is missing is a warning:
    requests are served all the same."""
    if not options.tracing.otlp_endpoint:
        return
    try:
        use(Exporter(options, binary, release))
    except ImportError as error:
        LOG.warning("no spans are exported to [tracing]otlp_endpoint: %s. Install the package's extra 'tracing'", error)


def flush() -> None:
    """Send what is not sent yet, for a few seconds at most: at the process's end."""
    if _exporter is not None:
        _exporter.provider.shutdown()


@contextlib.contextmanager
def span(name: str, kind: str = INTERNAL, **attributes: str | int) -> Iterator[Attributes]:
    """The block as a span below the current one; what is sent to others within it is below this one. The caller may add
    attributes until its end; ``name`` among them is the span's name."""
    found: Attributes = dict(attributes)
    if _exporter is None:
        yield found
        return
    who = context.current()
    parent = place_of(who)
    made = _exporter.start(name, kind, parent)
    own = Place(parent.trace, format(made.get_span_context().span_id, "016x"))
    try:
        with context.entered(msgspec.structs.replace(who, traceparent=own.header)):
            yield found
    except BaseException as error:
        _exporter.failed(made, error.code if isinstance(error, errors.NovaError) else type(error).__name__)
        raise
    finally:
        made.update_name(str(found.pop("name", name)))
        made.set_attributes({**found, "nova.request_id": who.request_id})
        made.end()


@contextlib.contextmanager
def below(place: Place) -> Iterator[None]:
    """The block's own spans, and those of others that it asks, are below this one, which :func:`note` writes later."""
    if _exporter is None:
        yield
        return
    with context.entered(msgspec.structs.replace(context.current(), traceparent=place.header)):
        yield


class Ended(NamedTuple):
    """A span whose ends are known from elsewhere: the journal. ``failure``: why it failed; empty where it did not."""

    name: str
    parent: Place
    own: str
    began: datetime.datetime
    ended: datetime.datetime
    failure: str = ""


def note(done: Ended, **attributes: str | int | None) -> None:
    """Export it. Times are UTC without a zone."""
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
