"""``[service_user]``: what our daemons are to the services next door, where a section has no credentials of its own.

Credentials and TLS options are keystoneauth's own and are read by ``nova.clients.session``.
"""

from __future__ import annotations

from oslo_config import cfg

GROUP = "service_user"

OPTS = [
    cfg.BoolOpt("send_service_user_token", default=False,
                help="Send our own token beside the user's, so that long operations survive the user's token."),
]
