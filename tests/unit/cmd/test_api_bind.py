"""Where APIs listen: who believes every caller is reached from its own machine alone."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from nova import conf, errors
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
    with pytest.raises(errors.service.CannotStart, match=r"noauth2 accepts every caller .*osapi_compute_listen"):
        api.bind(made, ["osapi_compute"])
    api.check_believing(made, "metadata")


def test_placement_when_every_caller_is_believed_then_not_for_others() -> None:
    with pytest.raises(errors.service.CannotStart, match=r"\[placement_api\]listen"):
        api.bind(options(), ["placement"], api.ALL)
