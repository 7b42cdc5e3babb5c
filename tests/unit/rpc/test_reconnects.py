"""How daemons come back to a broker that was away: not all at the same moment."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from nova.rpc import transport

RABBIT = "oslo_messaging_rabbit"


def opened(**given: object) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    transport.open_transport(conf)
    for name, value in given.items():
        conf.set_override(name, value, RABBIT)
    return conf


def test_transport_when_nothing_is_set_then_reconnects_are_spread() -> None:
    group = opened()[RABBIT]
    assert group.kombu_reconnect_splay == 0.5 and group.rabbit_interval_max == 2


@pytest.mark.parametrize("name", transport.DEFAULTS)
def test_default_of_ours_then_the_library_has_the_option_and_takes_it(name: str) -> None:
    """An option that the library calls otherwise would be left as it is, and nobody would notice."""
    assert opened()[RABBIT][name] == transport.DEFAULTS[name]
