"""``[consoleauth]``: console tokens."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "consoleauth"

OPTS = [
    cfg.IntOpt("token_ttl", default=600, min=0, deprecated_group="DEFAULT", deprecated_name="console_token_ttl",
               help="Seconds for which a console's token (its URL) is valid."),
    cfg.BoolOpt("enforce_session_timeout", default=False,
                help="Close a console when its token expires. Off: it may stay open."),
    cfg.BoolOpt("single_use_tokens", default=False,
                help="Make a console's token valid for one connection. A reloaded page then needs a new one."),
    cfg.IntOpt("workers", default=1, min=1, help="Worker processes of nova-consoleauth."),
]


class ConsoleauthOptions(Section, frozen=True, kw_only=True):
    """Values of ``[consoleauth]``."""

    token_ttl: int
    enforce_session_timeout: bool
    single_use_tokens: bool
    workers: int
