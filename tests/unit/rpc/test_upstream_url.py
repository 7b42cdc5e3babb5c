"""The broker's URL in upstream mode: the one of the control daemons, for hosts as well."""

from __future__ import annotations

from pathlib import Path

from nova.conf import register
from nova.rpc.transport import open_hosts_transport
from oslo_config import cfg


def test_hosts_transport_when_it_is_the_first_to_read_transport_url_then_it_goes_to_that_broker(tmp_path: Path) -> None:
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\ntransport_url = rabbit://nova:secret@broker.example:5671/cloud\n")
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)])
    register(conf)
    driver = open_hosts_transport(conf, "host1", "transport_url")
    (broker,) = driver._url.hosts
    assert (broker.hostname, broker.port, driver._url.virtual_host) == ("broker.example", 5671, "cloud")
