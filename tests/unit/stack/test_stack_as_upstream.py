"""A stack in upstream mode: the files of deployment tools, and none of what bounded mode needs."""

from __future__ import annotations

import pytest

from nova.conf._security_mode import BOUNDED_OPTIONS
from nova.manage.secret_files import readers
from stacklib import cli, nova, novaconf
from stacklib.layout import Choices
from stacklib.stack import Stack


@pytest.fixture
def layout(make_layout):
    return make_layout(sandbox=True, hosts=2, as_upstream=True, neutron="api", volumes="nfs")


def test_up_when_it_is_said_then_the_stack_is_in_upstream_mode_and_else_not():
    asked = cli.choices(cli.parser().parse_args(["up", "--as-upstream"]))
    assert asked.as_upstream and not cli.choices(cli.parser().parse_args(["up"])).as_upstream
    assert asked.differences(Choices()) == ["as_upstream"]  # no stack turns into the other kind by a second up


def test_files_when_upstream_then_no_option_of_bounded_mode_is_set(layout, secrets):
    for settings in (novaconf.as_upstream(layout, secrets),
                     *(novaconf.compute_as_upstream(layout, secrets, host) for host in layout.computes)):
        assert not [name for section, name in BOUNDED_OPTIONS if name in settings.get(section, {})]
        url = settings["DEFAULT"]["transport_url"]
        assert url.startswith("rabbit://nova:") and url.endswith("/nova")


def test_files_when_upstream_then_controllers_have_the_databases_and_computes_passwords_alone(layout, secrets):
    control, compute = novaconf.as_upstream(layout, secrets), novaconf.compute_as_upstream(
        layout, secrets, layout.computes[1])
    assert {"database", "api_database", "keystone_authtoken", "neutron", "cinder", "console"} <= control.keys()
    assert not {"database", "api_database"} & compute.keys()
    assert compute["keystone_authtoken"]["password"] == secrets.password("nova")
    assert compute["vnc"]["novncproxy_base_url"] == control["vnc"]["novncproxy_base_url"]
    assert compute["DEFAULT"]["host"] == layout.computes[1].name


def test_daemons_when_upstream_then_neither_consoleauth_nor_image_proxy_runs_and_each_has_one_file(layout, secrets):
    stack = Stack(layout, secrets, None)
    daemons = [*nova.conductors(stack), *nova.control_daemons(stack)]
    names = {one.name for one in daemons}
    assert {"nova-conductor", "nova-api", "nova-novncproxy"} <= names
    assert not names & {"nova-consoleauth", "nova-imageproxy", "nova-network"}
    for one in daemons:
        assert one.argv.count("--config-file") == 1 and one.argv[-1] == str(novaconf.control_file(layout))
    assert nova.enroll(stack) == "hosts enrol themselves"


def test_secrets_when_upstream_then_all_that_daemons_read_are_in_the_file_of_all(layout, secrets):
    """What bounded mode gives to one daemon each; but for the keys, which are generated, and hosts' own URL."""
    control = novaconf.as_upstream(layout, secrets)
    for daemon in readers.CONTROL:
        names = {(section, name) for section, options in novaconf.own(layout, secrets, daemon).items()
                 for name in options}
        assert not [one for one in names - set(BOUNDED_OPTIONS) if one[1] not in control.get(one[0], {})]
