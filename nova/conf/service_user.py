"""``[service_user]``: credentials of nova's daemons for other services, for sections without their own.

Credentials and TLS options are keystoneauth's own and are read by ``nova.clients.session``.
"""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "service_user"

OPTS = [
    cfg.BoolOpt("send_service_user_token", default=False,
                help="Send nova's service token with the user's token, so that long operations outlive the user's "
                     "token."),
]


class ServiceUserOptions(Section, frozen=True, kw_only=True):
    """Values of ``[service_user]``."""

    send_service_user_token: bool
