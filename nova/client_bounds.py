"""Bounds of clients, for each HTTP server of ours: connections, time, and bytes that wait.

Every server has a row here, and no other place makes bounds: one tenant's slow heads, slow bodies or slow readers are
not to keep others out. ``tests/unit/test_client_bounds.py`` attacks each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nova.conf.base import Options
from nova.http_server import BODY_BYTES, ClientBounds

HEAD_S = 30.0  # for TLS's handshake and a request's head
ANSWER_S = 900.0  # for an answer of an API to be made and taken: the slowest call of ours is over by then
UPLOAD_BYTES = 2 * 1024 ** 3  # of an image that comes to nova-all in chunks, which are read whole first
EC2_BYTES = 2 ** 20  # as many as the EC2 API takes: its signatures cover bodies


class ServerBounds(NamedTuple):
    """``of``: by options. ``rate``: what bounds how much one client can have done at a time."""

    of: Callable[[Options], ClientBounds]
    rate: str


def largest_body(options: Options) -> int:
    """Size in bytes of the largest body of a request, from the middleware that looks at it, if there is one."""
    known = "oslo_middleware" in options and "max_request_body_size" in options.oslo_middleware
    return options.oslo_middleware.max_request_body_size if known else BODY_BYTES


def _api(options: Options, whole_bytes: int = 0) -> ClientBounds:
    wsgi = options.wsgi
    return ClientBounds(wsgi.default_pool_size or 1, wsgi.client_socket_timeout, HEAD_S, ANSWER_S,
                        chunked_bytes=largest_body(options), whole_bytes=max(whole_bytes, largest_body(options)))


MONITORING = ClientBounds(workers=4, idle_s=60, head_s=10, answer_s=30, max_connections=50)
SHARES = "a project has half of the conductors' workers"
BOUNDS = {
    "osapi_compute": ServerBounds(_api, SHARES),
    "placement": ServerBounds(_api, SHARES),
    "ec2": ServerBounds(lambda options: _api(options, EC2_BYTES), SHARES),
    "metadata": ServerBounds(_api, "a guest has a few requests at a time, and 429 for more; answers are remembered"),
    "objectstore": ServerBounds(
        lambda options: ClientBounds(256, options.s3_client_timeout, HEAD_S, options.s3_longest_transfer,
                                     chunked_bytes=None, whole_bytes=0),  # objects, which are written as they come
        "a transfer has s3_longest_transfer, and a project has its quota"),
    "imageproxy": ServerBounds(
        lambda options: ClientBounds(1000, options.image_proxy.client_timeout, HEAD_S,
                                     options.image_proxy.longest_transfer, whole_bytes=0),  # images, likewise
        "transfers have [image_proxy]transfers places; a ticket is of one host"),
    "console": ServerBounds(lambda options: ClientBounds(100, idle_s=30, head_s=10),
                            "[console]max_sessions_per_user and its like"),
    "monitoring": ServerBounds(lambda options: MONITORING, "four requests at a time"),
    "nova-all": ServerBounds(lambda options: ClientBounds(256, head_s=HEAD_S, answer_s=ANSWER_S,
                                                          chunked_bytes=UPLOAD_BYTES), SHARES)}


def bounds(server: str, options: Options) -> ClientBounds:
    """Look up the bounds of the server with this name in :data:`BOUNDS`."""
    return BOUNDS[server].of(options)
