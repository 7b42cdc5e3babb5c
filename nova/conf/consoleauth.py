"""``[consoleauth]``: the tokens of consoles."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "consoleauth"

OPTS = [
    cfg.IntOpt("token_ttl", default=600, min=0, deprecated_group="DEFAULT", deprecated_name="console_token_ttl",
               help="Seconds for which a console's address is good."),
    cfg.BoolOpt("enforce_session_timeout", default=False,
                help="Close a console when its address is no longer good; else it may stay open."),
    cfg.BoolOpt("single_use_tokens", default=False,
                help="A console's address serves for one connection. A page that is loaded again then needs a new one."),
    cfg.IntOpt("workers", default=1, min=1, help="Worker processes of nova-consoleauth."),
]
