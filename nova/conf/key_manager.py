"""``[key_manager]``: the key manager for encrypted volumes."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "key_manager"

OPTS = [
    cfg.StrOpt("backend", default="barbican",
               help="Key manager: barbican, or a name that ends in ConfKeyManager for fixed_key as the only key. It "
                    "must match Cinder's. (Barbican, too, uses fixed_key for older volumes.)"),
    cfg.StrOpt("fixed_key", secret=True,
               help="Single key for all volumes, in hex digits; the same as Cinder's. It decrypts every volume: only "
                    "for trials, and for volumes from before Barbican."),
]


class KeyManagerOptions(Section, frozen=True, kw_only=True):
    """Values of ``[key_manager]``."""

    backend: str
    fixed_key: str | None
