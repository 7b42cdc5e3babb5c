"""Where APIs listen: who believes every caller is reached from its own machine alone."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from nova import conf, configuration, errors
from nova.cmd import api


def options(**chosen: object) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([])
    for name, value in {"auth_strategy": "noauth2", **chosen}.items():
        made.set_override(name, value, None if name.endswith("listen") else "api")
    return made


@pytest.mark.parametrize("chosen", [
    {"osapi_compute_listen": "127.0.0.1"}, {"osapi_compute_listen": "::1"}, {"osapi_compute_listen": "127.0.1.1"},
    {"noauth2_anywhere": True}, {"auth_strategy": "keystone"}], ids=str)
def test_api_when_its_callers_are_known_or_of_this_machine_then_it_may_listen(chosen: dict[str, object]) -> None:
    api.check_believing(options(**chosen), "osapi_compute")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "a127.example"])
def test_api_when_every_caller_is_believed_then_not_for_others(address: str) -> None:
    made = options(osapi_compute_listen=address)
    with pytest.raises(errors.service.CanNotStart, match=r"noauth2 believes every caller, .*osapi_compute_listen"):
        api.bind(made, ["osapi_compute"])
    api.check_believing(made, "metadata")


def test_placement_when_every_caller_is_believed_then_not_for_others() -> None:
    with pytest.raises(errors.service.CanNotStart, match=r"\[placement_api\]listen"):
        api.bind(options(), ["placement"], api.ALL)


@pytest.mark.parametrize(("option", "value", "said"), [
    ("region_list", ["foo"], "[DEFAULT]region_list can not be used"),
    ("keystone_ec2_url", "http://k/v3", "[DEFAULT]keystone_ec2_url can not be used")])
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
        record.getMessage() for record in caplog.records if "can not start" in record.getMessage()] != []
