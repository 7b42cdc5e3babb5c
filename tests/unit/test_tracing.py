"""Spans and how they hang together."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nova import context, errors, tracing

REQUEST = "req-0c5f0000-0000-4000-8000-00000000000a"
TRACE = "0c5f000000004000800000000000000a"
CALLERS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def kept_spans(binary: str = "nova-api", ratio: float = 1.0) -> InMemorySpanExporter:
    """From now on spans come here."""
    kept = InMemorySpanExporter()
    options = SimpleNamespace(host="ctl", tracing=SimpleNamespace(otlp_endpoint="", sample_ratio=ratio))
    tracing.use(tracing.Exporter(options, binary, "1.0", SimpleSpanProcessor(kept)))
    return kept


@pytest.fixture(autouse=True)
def off() -> Iterator[None]:
    yield
    tracing.use(None)


@pytest.fixture
def exported() -> InMemorySpanExporter:
    return kept_spans()


@pytest.fixture
def request_context() -> Iterator[None]:
    with context.entered(context.RequestContext(request_id=REQUEST)):
        yield


def ids(span: Any) -> tuple[str, str, str]:
    """Trace, span and parent."""
    return (format(span.context.trace_id, "032x"), format(span.context.span_id, "016x"),
            format(span.parent.span_id, "016x") if span.parent else "")


@pytest.mark.parametrize("header", [
    "", "00", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", CALLERS.replace("7-01", "g-01"), CALLERS + "\r\nX-Evil: 1",
    CALLERS.upper(), "01" + CALLERS[2:], CALLERS.replace("00f067aa0ba902b7", "0" * 16)])
def test_header_when_it_is_none_of_its_form_then_it_counts_as_absent(header: str) -> None:
    assert tracing.valid(header) is None and tracing.valid(CALLERS) == CALLERS


def test_span_when_nothing_is_exported_then_what_the_caller_brought_is_passed_on_as_it_came() -> None:
    with context.entered(context.RequestContext(request_id=REQUEST, traceparent=CALLERS)), tracing.span("GET"):
        assert tracing.headers() == {"traceparent": CALLERS}


def test_span_when_a_caller_brought_none_then_the_trace_is_the_request(exported, request_context) -> None:
    with tracing.span("POST /servers", tracing.SERVER), tracing.span("ConductorRPC.create_servers", tracing.CLIENT):
        sent = tracing.headers()["traceparent"]
    inner, outer = exported.get_finished_spans()
    assert ids(outer) == (TRACE, ids(outer)[1], "") and ids(inner) == (TRACE, ids(inner)[1], ids(outer)[1])
    assert sent == f"00-{TRACE}-{ids(inner)[1]}-01" and outer.attributes["nova.request_id"] == REQUEST


def test_span_when_a_caller_brought_one_then_it_is_the_parent(exported) -> None:
    with context.entered(context.RequestContext(request_id=REQUEST, traceparent=CALLERS)), tracing.span("GET"):
        pass
    assert ids(exported.get_finished_spans()[0])[::2] == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")


def test_span_when_the_block_fails_then_it_says_so_by_the_errors_code(exported, request_context) -> None:
    with pytest.raises(errors.Unavailable), tracing.span("GET"):
        raise errors.Unavailable("secret words")
    failed = exported.get_finished_spans()[0]
    assert not failed.status.is_ok and failed.status.description == "nova.unavailable"
    assert "secret" not in str(failed.to_json())


def test_note_when_a_step_ended_long_after_its_children_then_they_hang_below_it(exported, request_context) -> None:
    step = tracing.Place(TRACE, tracing.span_of("operation", 7, "BuildGuests", 1))
    with tracing.below(step), tracing.span("ComputeRPC.build_guests", tracing.CLIENT):
        pass
    began = datetime.datetime(2026, 11, 23, 10, 0, 0, 250000)
    tracing.note(tracing.Ended("BuildGuests", tracing.Place(TRACE, "00f067aa0ba902b7"), step.span, began,
                               began + datetime.timedelta(seconds=3)), **{"nova.host": "cn1"})
    child, parent = exported.get_finished_spans()
    assert ids(child)[2] == step.span == ids(parent)[1] and ids(parent)[2] == "00f067aa0ba902b7"
    assert (parent.end_time - parent.start_time, parent.start_time % 10**9) == (3 * 10**9, 250_000_000)


def test_ratio_when_it_is_a_part_then_every_process_chooses_the_same_requests() -> None:
    def chosen(binary: str) -> set[str]:
        kept = kept_spans(binary, ratio=0.5)
        for number in range(40):
            request = f"req-00000000-0000-4000-{number:04x}-{number * 7919 % 65536:04x}00000000"
            with context.entered(context.RequestContext(request_id=request)), tracing.span("x"):
                pass
        return {ids(span)[0] for span in kept.get_finished_spans()}
    assert 0 < len(chosen("nova-api")) < 40 and chosen("nova-api") == chosen("nova-conductor")


def test_export_when_the_extra_is_not_installed_then_it_is_a_warning(monkeypatch, caplog) -> None:
    def missing(*_: object) -> None:
        raise ImportError("No module named 'opentelemetry'")
    monkeypatch.setattr(tracing, "Exporter", missing)
    tracing.export(SimpleNamespace(tracing=SimpleNamespace(otlp_endpoint="http://x")), "nova-api", "1.0")
    with context.entered(context.RequestContext(request_id=REQUEST)), tracing.span("GET"):
        assert "extra 'tracing'" in caplog.text and tracing.headers() == {}
