"""Where hosts and conductors meet, in a process that has opened nothing else before."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.conf._options import Options
from nova.rpc.hosts_url import hosts_url, hosts_url_option
from nova.rpc.transport import open_transport

SHARED, OWN = "rabbit://nova:broker@127.0.0.1:5673/nova", "rabbit://nova:broker@127.0.0.1:5673/nova-hosts"
UPSTREAM, HOST = f"transport_url = {SHARED}\n", f"hosts_transport_url = {OWN}\n"


def read(tmp_path: Path, text: str) -> Options:
    file = tmp_path / "nova.conf"
    file.write_text(f"[DEFAULT]\n{text}")
    options = cfg.ConfigOpts()
    conf.register(options)
    options([], default_config_files=[str(file)])
    return options


@pytest.mark.parametrize(("text", "url"), [(UPSTREAM, SHARED), (UPSTREAM + HOST, OWN), (HOST, OWN)],
                         ids=["upstream", "bounded", "host"])
def test_hosts_url_when_the_broker_library_has_declared_nothing_then_it_is_read(
        text: str, url: str, tmp_path: Path) -> None:
    options = read(tmp_path, text)
    assert hosts_url(options, hosts_url_option(options)) == url


@pytest.mark.parametrize("option", ["transport_url", "hosts_transport_url"])
def test_hosts_url_when_no_url_is_set_then_it_is_said_which_option_is_missing(option: str, tmp_path: Path) -> None:
    with pytest.raises(errors.config.Missing) as missing:
        hosts_url(read(tmp_path, ""), option)
    assert "[DEFAULT]transport_url" in missing.value.message


def test_reply_queue_when_two_applications_run_under_one_servers_name_then_each_is_named_by_its_daemon() -> None:
    """With use_queue_manager, as openstack-ansible and kolla-ansible set it, under uWSGI."""
    names = []
    for daemon in ("nova-api-os-compute", "nova-api-metadata"):
        options = cfg.ConfigOpts()
        options([], prog=daemon)
        conf.register(options)
        open_transport(options)
        names.append(options.oslo_messaging_rabbit.processname)
    assert names == ["nova-api-os-compute", "nova-api-metadata"]
