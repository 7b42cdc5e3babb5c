"""``[doctor]``: the checks of ``nova-manage doctor`` on this host."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "doctor"

OPTS = [
    cfg.ListOpt("expected_daemons", default=[],
                help="Daemons that must run on this host, by program name: nova-api, nova-conductor. 'nova-manage "
                     "doctor' fails if one of them does not run. Empty: the systemd units enabled here; without any, "
                     "the daemons that have registered from this host."),
]


class DoctorOptions(Section, frozen=True, kw_only=True):
    """Values of ``[doctor]``."""

    expected_daemons: list[str]
