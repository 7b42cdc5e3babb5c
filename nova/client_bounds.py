"""Limits for clients of each HTTP server of nova: connections, time, and buffered bytes.

Every server has a row here, and limits are set nowhere else: slow heads, slow bodies or slow readers of one tenant must
not block other clients. ``tests/unit/test_client_bounds.py`` attacks each row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nova.conf._options import Options, oslo_conf
from nova.http_server import BODY_BYTES, ClientBounds

HEAD_S = 30.0  # for the TLS handshake and the head of a request
ANSWER_S = 900.0  # for an API to generate its answer and the client to receive it: enough for the slowest call
UPLOAD_BYTES = 2 * 1024 ** 3  # of an image that is uploaded to nova-all in chunks, which are first read completely
EC2_BYTES = 2 ** 20  # the limit of the EC2 API, whose signatures cover bodies


class ServerBounds(NamedTuple):
    """Limits of a server. ``of``: function of the options. ``rate``: description of what limits the work for one client
    at a time."""

    of: Callable[[Options], ClientBounds]
    rate: str


def largest_body(options: Options) -> int:
    """Return the size limit of request bodies, in bytes: that of the middleware that checks it, if it is configured."""
    source = oslo_conf(options)
    known = "oslo_middleware" in source and "max_request_body_size" in source.oslo_middleware
    return int(source.oslo_middleware.max_request_body_size) if known else BODY_BYTES


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
    "metadata": ServerBounds(_api, "a guest has a few requests at a time, and 429 for more; answers are cached"),
    "objectstore": ServerBounds(
        lambda options: ClientBounds(256, options.s3_client_timeout, HEAD_S, options.s3_longest_transfer,
                                     chunked_bytes=None, whole_bytes=0),  # objects, which are written as they arrive
        "a transfer has s3_longest_transfer, and a project has its quota"),
    "imageproxy": ServerBounds(
        lambda options: ClientBounds(1000, options.image_proxy.client_timeout, HEAD_S,
                                     options.image_proxy.longest_transfer, whole_bytes=0),  # images, likewise
        "[image_proxy]transfers limits transfers; a ticket is for one host"),
    "console": ServerBounds(lambda options: ClientBounds(100, idle_s=30, head_s=10),
                            "[console]max_sessions_per_user and similar options"),
    "monitoring": ServerBounds(lambda options: MONITORING, "four requests at a time"),
    "nova-all": ServerBounds(lambda options: ClientBounds(256, head_s=HEAD_S, answer_s=ANSWER_S,
                                                          chunked_bytes=UPLOAD_BYTES), SHARES)}


def bounds(server: str, options: Options) -> ClientBounds:
    """Look up the bounds of the server with this name in :data:`BOUNDS`."""
    return BOUNDS[server].of(options)
