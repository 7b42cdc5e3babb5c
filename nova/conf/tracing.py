"""``[tracing]``: spans of requests, exported by OpenTelemetry."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf._urls import WebUrl

GROUP = "tracing"

OPTS = [
    cfg.Opt("otlp_endpoint", type=WebUrl(),
               help="URL to which spans are sent, by OTLP over HTTP: http://COLLECTOR:4318/v1/traces. Unset: no "
                    "spans are created, and a caller's traceparent header is forwarded unchanged. Needs the extra "
                    "'tracing' of the package (opentelemetry-sdk and its exporter)."),
    cfg.FloatOpt("sample_ratio", default=1.0, min=0.0, max=1.0,
                 help="Fraction of all requests whose spans are exported. All daemons select the same requests, by "
                      "their ids; the caller's sampling decision is ignored."),
]


class TracingOptions(Section, frozen=True, kw_only=True):
    """Values of ``[tracing]``."""

    otlp_endpoint: str | None
    sample_ratio: float
