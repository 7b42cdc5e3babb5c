"""``[doctor]``: what ``nova-manage doctor`` expects of this host."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "doctor"

OPTS = [
    cfg.ListOpt("expected_daemons", default=[],
                help="Daemons that have to run on this host, as their programs are called: nova-api, nova-conductor. "
                     "'nova-manage doctor' fails while one of them does not. Empty: the units of systemd that are "
                     "enabled here; where there are none, the daemons that registered from this host before."),
]
