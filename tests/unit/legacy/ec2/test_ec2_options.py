"""Options of the EC2 API whose values are wrong."""

from __future__ import annotations

import pytest

from nova import configuration
from nova.cmd import api
from tests.unit.cmd.test_api_bind import options


@pytest.mark.parametrize(("option", "value", "said"), [
    ("region_list", ["foo"], "[DEFAULT]region_list cannot be used"),
    ("keystone_ec2_url", "http://k/v3", "[DEFAULT]keystone_ec2_url cannot be used")])
def test_ec2_when_an_option_is_wrong_then_the_program_says_so_once_and_is_not_started_again(
        monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, option: str, value: object, said: str
        ) -> None:
    made = options(auth_strategy="keystone")
    made.set_override(option, value)
    monkeypatch.setattr(configuration, "read", lambda *_: made)
    monkeypatch.setattr(api.common, "begin", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        api.serve("nova-api-ec2", [api.EC2])
    assert ended.value.code == 2
    assert [record.getMessage() for record in caplog.records if said in record.getMessage()] == [
        record.getMessage() for record in caplog.records if "cannot start" in record.getMessage()] != []
