"""``[key_manager]``: where the keys of encrypted volumes are."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "key_manager"

OPTS = [
    cfg.StrOpt("backend", default="barbican",
               help="barbican, or a name that ends in ConfKeyManager: then fixed_key is the only key. It must be what "
                    "Cinder has. (With barbican, too, fixed_key is used for volumes from before.)"),
    cfg.StrOpt("fixed_key", secret=True,
               help="One key for all volumes, in hex digits; the same as Cinder's. Whoever reads it reads every "
                    "volume: for trials, and for volumes from before Barbican."),
]
