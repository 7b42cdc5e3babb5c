"""A stack whose networks are Neutron's: what it is asked for, what its daemons read, who may do what."""

from __future__ import annotations

import configparser

import pytest

from stacklib import cli, databases, identity, neutron, nova, novaconf, rabbitmq, summary, up
from stacklib.errors import StackError
from stacklib.layout import Choices
from stacklib.stack import Stack


def parse(*words: str):
    return cli.parser().parse_args(list(words))


def parsed(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    return parser


@pytest.fixture
def layout(make_layout):
    return make_layout(sandbox=True, driver="fake", computes=2, neutron="api")


def test_up_when_neutron_is_said_then_its_api_and_without_it_none():
    assert cli.choices(parse("up", "--neutron")).neutron == "api"
    assert cli.choices(parse("up")).neutron == "" and Choices().neutron == ""
    assert Choices(neutron="api").differences(Choices()) == ["neutron"]


@pytest.mark.parametrize("words", [("--auth", "noauth2"), ("--database", "postgresql")])
def test_up_when_neutron_is_said_beside_what_it_was_not_tried_with_then_refused(words):
    with pytest.raises(StackError, match="Keystone and MariaDB"):
        cli.choices(parse("up", "--neutron", *words))


def test_parts_when_networks_are_nova_networks_then_neutron_is_not_installed(layout, make_layout):
    assert "neutron" in up.parts_of(layout, False)
    assert "neutron" not in up.parts_of(make_layout(sandbox=True), False)
    assert "neutron (api)" in up.describe(layout.choices, layout.state)


def test_neutron_conf_then_it_knows_its_own_database_user_and_broker_alone(layout, secrets):
    text = neutron.settings(layout, secrets)
    conf = parsed(text)
    assert conf["ml2"]["mechanism_drivers"] == "bind_at_once"
    assert conf["database"]["connection"] == databases.url(layout, secrets, "neutron")
    assert conf["DEFAULT"]["transport_url"].endswith("/neutron")
    assert conf["nova"]["username"] == "neutron" and conf["DEFAULT"]["notify_nova_on_port_data_changes"] == "true"
    assert set(conf["quotas"].values()) - set(conf.defaults().values()) == {"-1"}
    assert not [name for name in ("nova", "db-nova", "rabbit-nova") if secrets.password(name) in text]


def test_nova_confs_when_networks_are_neutrons_then_the_conductor_has_credentials_and_hosts_none(layout, secrets):
    control = novaconf.control(layout, secrets)
    assert control["DEFAULT"]["use_neutron"] == "true" and "flat_network_bridge" not in control["DEFAULT"]
    assert control["neutron"]["username"] == "nova" and control["neutron"]["default_floating_pool"] == "public"
    for host in layout.computes:
        conf = novaconf.compute(layout, secrets, host)
        assert conf["DEFAULT"]["use_neutron"] == "true" and "neutron" not in conf


def test_nova_confs_when_networks_are_nova_networks_then_no_word_of_neutron(make_layout, secrets):
    control = novaconf.control(make_layout(sandbox=True), secrets)
    assert "neutron" not in control and "use_neutron" not in control["DEFAULT"]


def test_identity_and_broker_when_neutron_is_there_then_it_has_a_user_and_an_endpoint(layout, make_layout, secrets):
    plain = make_layout(sandbox=True)
    assert "neutron" in identity.users(layout) and "neutron" not in identity.users(plain)
    assert summary.endpoints(layout)["network"] == "http://10.200.0.1:9696"
    assert "network" not in summary.endpoints(plain)
    assert identity.fingerprint(layout) != identity.fingerprint(plain)
    made = rabbitmq.definitions(layout, secrets)
    assert [one["name"] for one in made["vhosts"]] == ["nova", "nova-hosts", "neutron"]
    assert {one["user"]: one["vhost"] for one in made["permissions"]}["neutron"] == "neutron"
    assert [one["name"] for one in rabbitmq.definitions(plain, secrets)["vhosts"]] == ["nova", "nova-hosts"]


def test_control_daemons_when_networks_are_neutrons_then_no_nova_network(layout, make_layout, secrets):
    names = {one.name for one in nova.control_daemons(Stack(layout, secrets, None))}
    assert "nova-network" not in names and "nova-api" in names
    plain = nova.control_daemons(Stack(make_layout(sandbox=True, driver="fake"), secrets, None))
    assert "nova-network" in {one.name for one in plain}
