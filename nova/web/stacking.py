"""Middleware around an application. The middleware of libraries is in :mod:`nova.web.layers`, which costs 12 MB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from wsgiref.types import WSGIApplication

Middleware = Callable[[WSGIApplication], WSGIApplication]


def stacked(application: WSGIApplication, layers: Sequence[Middleware]) -> WSGIApplication:
    """Return the application behind the layers; the first of them receives a request first."""
    for middleware in reversed(layers):
        application = middleware(application)
    return application
