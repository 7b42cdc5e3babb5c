"""Doctor check of optional packages that this host's services would use; no service needs one to start."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection
from typing import NamedTuple

from nova.conf._drivers import is_libvirt
from nova.conf._options import Options
from nova.console import installed, kinds
from nova.manage.doctor.daemons import expected, with_novncproxy
from nova.manage.doctor.finding import OK, WARN, Finding


class OptionalPart(NamedTuple):
    """An optional package. ``wanted``: whether the configuration, or a program of this host, uses it. ``lacks``: the
    feature that does not work without it, and how to install it; empty if it is installed."""

    wanted: Callable[[Options, Collection[str]], bool]
    lacks: Callable[[Options], str]


def _pages(kind: kinds.ConsoleKind) -> OptionalPart:
    return OptionalPart(lambda options, programs: kind.binary in programs,
                        lambda options: _of_proxy(kind, options))


def _of_proxy(kind: kinds.ConsoleKind, options: Options) -> str:
    lacks = installed.pages(kind, options.web, options.console.xterm_path).lacks
    return f"{kind.binary}: {lacks}" if lacks else ""


def _module(module: str, extra: str, without: str, wanted: Callable[[Options, Collection[str]], bool]) -> OptionalPart:
    words = f"{without}: install the package's extra {extra}"
    return OptionalPart(wanted, lambda options: "" if importlib.util.find_spec(module) else words)


PARTS = (
    *(_pages(kind) for kind in (kinds.NOVNC, kinds.SPICE, kinds.SERIAL)),
    _module("opentelemetry", "tracing", "[tracing]otlp_endpoint is set, but no spans are exported",
            lambda options, programs: bool(options.tracing.otlp_endpoint)),
    _module("ldap3", "ldap", "[DEFAULT]instance_dns_manager is LdapDNS, but no names are written",
            lambda options, programs: options.instance_dns_manager.endswith("LdapDNS")),
)
#: Not requested by configuration: needed when volumes of these kinds are attached.
BRICK = _module("os_brick", "brick", "volumes by iSCSI, Fibre Channel and NVMe-oF cannot be attached here",
                lambda options, programs: is_libvirt(options.compute_driver))


def optional_parts(options: Options, programs: Collection[str] | None = None) -> Finding:
    """Report missing optional packages. ``programs``: the services of this host (default: as configured or as enabled
    in systemd)."""
    here = (expected(options).programs or ()) if programs is None else programs
    if "nova-novncproxy" in here:
        here = (*here, *with_novncproxy(options))
    lacks = [words for part in PARTS if part.wanted(options, here) and (words := part.lacks(options))]
    if lacks:
        return Finding(WARN, "; ".join(lacks), "install them if you need them: all services run without them")
    unused = BRICK.lacks(options) if BRICK.wanted(options, here) else ""
    return Finding(OK, unused or "all optional packages that are used here are installed")
