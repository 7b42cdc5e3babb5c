from __future__ import annotations

from types import SimpleNamespace

import pytest
from oslo_config import cfg

from nova import conf as nova_conf
from nova.clients import neutron as client
from nova.clients import session
from nova.manage import doctor
from tests.fakes.neutron import FakeNeutron


@pytest.fixture
def fake() -> FakeNeutron:
    return FakeNeutron()


def look(fake: FakeNeutron, monkeypatch, roles=("admin", "service"), **neutron):
    """``monkeypatch``: the client is made of options, and the fake has no address that one could configure."""
    conf = nova_conf.register(cfg.ConfigOpts())
    conf([], project="nova", default_config_files=[])
    for name, value in neutron.items():
        conf.set_override(name, value, "neutron")
    access = SimpleNamespace(get_access=lambda _session: SimpleNamespace(role_names=list(roles)))
    monkeypatch.setattr(session, "load", lambda options, section: session.Credentials(None, access))
    monkeypatch.setattr(client, "of_groups", lambda group, credentials: fake.client(retries=0))
    return doctor.neutron(conf)


def test_neutron_when_not_in_use_then_it_says_so(fake, monkeypatch):
    found = look(fake, monkeypatch)
    assert found.state == "ok" and "nova-network" in found.what and fake.requests == []


@pytest.mark.parametrize("how, words", [(401, "in nova.conf: 401"), ("refused", "network service")])
def test_neutron_when_it_does_not_let_us_in_then_it_is_bad(fake, monkeypatch, how, words):
    fake.trouble("GET", "extensions", how)
    found = look(fake, monkeypatch, endpoint_override="http://n")
    assert found.state == "FAILED" and words in found.what and "[neutron]" in found.cure


def test_neutron_when_all_is_there_then_ok_and_what_lacks_is_told(fake, monkeypatch):
    assert look(fake, monkeypatch, endpoint_override="http://n").state == "ok"
    assert "role service" in look(fake, monkeypatch, roles=("admin",), endpoint_override="http://n").what
    fake.extensions.discard("binding-extended")
    assert "live migrations" in look(fake, monkeypatch, endpoint_override="http://n").what
