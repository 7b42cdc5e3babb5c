"""A stack with the EC2 API: what is asked for, which daemons it has, where clients find it."""

from __future__ import annotations

import pytest

from stacklib import cli, identity, nova, novaconf, ports, summary
from stacklib.errors import StackError
from stacklib.stack import Stack


def parse(*words: str):
    return cli.parser().parse_args(list(words))


def test_up_when_ec2_is_said_then_there_is_one_and_else_none():
    assert cli.choices(parse("up", "--ec2")).ec2
    assert not cli.choices(parse("up")).ec2


def test_up_when_ec2_is_said_without_keystone_then_refused():
    with pytest.raises(StackError, match="--ec2 needs Keystone"):
        cli.choices(parse("up", "--ec2", "--auth", "noauth2"))


@pytest.mark.parametrize("has_ec2", [True, False])
def test_stack_when_it_has_ec2_then_daemons_ports_and_catalog_have_it_and_else_not(has_ec2, make_layout, secrets):
    layout = make_layout(ec2=has_ec2)
    assert ({"ec2", "s3"} <= ports.wanted(layout)) is has_ec2
    assert ("ec2" in summary.endpoints(layout)) is has_ec2
    assert identity.services(layout).get("ec2", ("", "", ""))[2] == ("/services/Cloud" if has_ec2 else "")
    written = novaconf.control(layout, secrets)["DEFAULT"]
    assert written.get("ec2_host") == (layout.address if has_ec2 else None)
    assert written.get("ec2_listen") == (layout.address if has_ec2 else None), "on the machine itself nobody else"
    daemons = {one.name for one in nova.control_daemons(Stack(layout, secrets, None))}
    assert ({"nova-api-ec2", "nova-objectstore", "nova-cert"} <= daemons) is has_ec2


def test_upgrade_when_a_stack_has_ec2_then_its_apis_come_after_those_they_ask(make_layout, secrets):
    order = [one.name for one in nova.upgrade_order(Stack(make_layout(ec2=True), secrets, None))]
    assert order.index("nova-conductor") < order.index("nova-cert") < order.index("nova-objectstore") \
        < order.index("nova-api-ec2") < order.index("nova-api")
