"""What an operator's policy file forbids is forbidden in EC2's API and in the compute API alike (OSSA-2014-011)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from oslo_policy import opts

from nova.legacy.ec2 import app
from nova.policies import Policy
from tests.fakes.api import DEMO, ApiClient, configuration
from tests.fakes.ec2 import Believing, Ec2Client

RULES = "os_compute_api:os-security-groups"
UUID = "11111111-2222-4333-8444-555555555555"
OPEN = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "10.0.0.0/8"}


class Deed(NamedTuple):
    """The same effect by either API."""

    action: str
    params: dict[str, object]
    method: str
    path: str
    body: Any = None


DEEDS = {
    f"{RULES}:get": Deed("DescribeSecurityGroups", {}, "GET", "/os-security-groups"),
    f"{RULES}:create": Deed("CreateSecurityGroup", {"GroupName": "new", "GroupDescription": "d"}, "POST",
                            "/os-security-groups", {"security_group": {"name": "new", "description": "d"}}),
    f"{RULES}:delete": Deed("DeleteSecurityGroup", {"GroupName": "web"}, "DELETE", f"/os-security-groups/{UUID}"),
    f"{RULES}:rule:create": Deed(
        "AuthorizeSecurityGroupIngress", {"GroupName": "web", **OPEN}, "POST", "/os-security-group-rules",
        {"security_group_rule": {"parent_group_id": UUID, "ip_protocol": "tcp", "from_port": 22, "to_port": 22,
                                 "cidr": "10.0.0.0/8"}}),
    f"{RULES}:rule:delete": Deed("RevokeSecurityGroupIngress", {"GroupName": "web", **OPEN}, "DELETE",
                                 f"/os-security-group-rules/{UUID}"),
}


@pytest.mark.parametrize("rule", DEEDS)
def test_deed_when_the_policy_file_forbids_it_then_no_api_does_it(tmp_path: Path, rule: str) -> None:
    deed, path = DEEDS[rule], tmp_path / "policy.yaml"
    path.write_text(f'"{rule}": "role:chosen"\n')
    conf = configuration()
    opts.set_defaults(conf)
    conf.set_override("policy_file", str(path), group="oslo_policy")
    ec2 = Ec2Client()
    assert ec2.ask("CreateSecurityGroup", {"GroupName": "web", "GroupDescription": "d"}).status == 200
    ec2.application = app.build(replace(ec2.site, policy=Policy(conf)), Believing())
    assert ec2.ask(deed.action, deed.params).refusal == (403, "UnauthorizedOperation")
    compute = ApiClient(ec2.conductor, conf, DEMO, "2.35")
    assert compute.request(deed.method, deed.path, deed.body).status_int == 403
    assert ApiClient(ec2.conductor, token=DEMO, version="2.35").request(
        deed.method, deed.path, deed.body).status_int != 403
