"""``[tracing]``: spans of requests, exported by OpenTelemetry."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._urls import WebUrl

GROUP = "tracing"

OPTS = [
    cfg.Opt("otlp_endpoint", type=WebUrl(),
               help="Where spans are sent, by OTLP over HTTP: http://COLLECTOR:4318/v1/traces. Not set: none are made, "
                    "and a caller's traceparent header is passed on as it came. Needs the extra 'tracing' of the "
                    "package (opentelemetry-sdk and its exporter)."),
    cfg.FloatOpt("sample_ratio", default=1.0, min=0.0, max=1.0,
                 help="The part of all requests whose spans are exported. All daemons choose the same requests, by "
                      "their ids; whether a caller wants its own exported counts for nothing."),
]
