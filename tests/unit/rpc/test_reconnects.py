"""How daemons come back to a broker that was away: not all at the same moment."""

from __future__ import annotations

from pathlib import Path

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


def test_transport_when_nothing_is_set_then_each_process_waits_for_a_time_of_its_own() -> None:
    least, most = transport.RECONNECT_DELAY_S
    delays = [opened()[RABBIT].kombu_reconnect_delay for _ in range(50)]
    assert len({*delays}) == 50 and all(least <= delay <= most for delay in delays)
    assert max(delays) - min(delays) > (most - least) / 2


def test_transport_when_the_operator_sets_the_delay_then_it_is_that(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text(f"[{RABBIT}]\nkombu_reconnect_delay = 0.7\n")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(file)])
    transport.open_transport(conf)
    assert conf[RABBIT].kombu_reconnect_delay == 0.7


@pytest.mark.parametrize("name", transport.DEFAULTS)
def test_default_of_ours_then_the_library_has_the_option_and_takes_it(name: str) -> None:
    """An option that the library calls otherwise would be left as it is, and nobody would notice."""
    assert opened()[RABBIT][name] == transport.DEFAULTS[name]
