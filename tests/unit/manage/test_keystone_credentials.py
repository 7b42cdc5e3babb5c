"""Doctor's lines about credentials: Keystone's word for each section that has any, with the option's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import loading

from nova.clients import session
from nova.conf.quota import UNIFIED
from nova.manage import doctor
from nova.manage.doctor import keystone_credentials
from tests.fakes.keystone import FakeKeystone
from tests.unit.manage.test_doctor import options


@pytest.fixture
def keystone() -> Iterator[FakeKeystone]:
    with FakeKeystone({"compute": "http://127.0.0.1:9/v2.1"}, {"nova": "right"}) as made:
        yield made


def with_credentials(url: str, section: str, password: str = "right", **values: Any) -> Any:
    made = options(api__auth_strategy="keystone", **values)
    plugin = loading.get_auth_plugin_conf_options("password")
    made.register_opts([*loading.get_auth_common_conf_options(), *plugin], group=section)
    for name, value in {"auth_type": "password", "auth_url": f"{url}/v3", "username": "nova", "password": password,
                        "project_name": "nova", "user_domain_name": "Default",
                        "project_domain_name": "Default"}.items():
        made.set_override(name, value, group=section)
    return made


#: A check -> the section that has its credentials, and what switches it on.
CHECKS = [(keystone_credentials.keystone, "keystone_authtoken", {}),
          (keystone_credentials.service_user, "service_user", {"service_user__send_service_user_token": True}),
          (keystone_credentials.limits, "oslo_limit", {"quota__driver": UNIFIED})]


@pytest.mark.parametrize(("check", "section", "values"), CHECKS)
def test_credentials_when_keystone_takes_or_refuses_them_then_their_section_is_named(keystone: FakeKeystone, check: Any,
                                                                                    section: str, values: dict) -> None:
    refused = check(with_credentials(keystone.url, section, "s3cret", **values))
    assert refused.state == doctor.BAD and f"[{section}]" in refused.what and f"[{section}]username" in refused.cure
    assert "s3cret" not in refused.what + refused.cure
    away = check(with_credentials("http://127.0.0.1:9", section, **values))
    assert away.state == doctor.BAD and f"[{section}]auth_url" in away.cure
    if check is not keystone_credentials.limits:
        assert check(with_credentials(keystone.url, section, **values)).state == doctor.OK


@pytest.mark.parametrize(("check", "section", "values"), CHECKS)
def test_credentials_when_there_are_none_then_the_section_to_fill_is_named(check: Any, section: str, values: dict
                                                                           ) -> None:
    found = check(options(api__auth_strategy="keystone", **values))
    assert found.state == doctor.BAD and f"[{section}]" in found.what and "auth_url" in found.cure


@pytest.mark.parametrize(("check", "section", "values"), CHECKS)
def test_credentials_on_a_compute_host_then_nobody_is_asked(check: Any, section: str, values: dict) -> None:
    assert check(options(compute_driver="libvirt.LibvirtDriver", **values)).state == doctor.OK


def test_glance_when_its_credentials_are_another_sections_then_that_one_is_named(keystone: FakeKeystone) -> None:
    found = doctor.glance(with_credentials(keystone.url, "service_user", "wrong"))
    assert found.state == doctor.BAD and "[service_user]" in found.what and "[service_user]username" in found.cure


@pytest.mark.parametrize("catalog", [{}, {"compute": "http://127.0.0.1:9/v2.1"}])
def test_cinder_when_the_catalog_has_none_then_all_is_well(catalog: dict[str, str]) -> None:
    with FakeKeystone(catalog, {"nova": "right"}) as keystone:
        found = doctor.cinder(with_credentials(keystone.url, "keystone_authtoken"))
    assert found.state == doctor.OK and "no Cinder" in found.what


def test_limits_when_keystone_tells_none_then_the_role_is_named(keystone: FakeKeystone) -> None:
    keystone.endpoints = {}
    found = keystone_credentials.limits(with_credentials(keystone.url, "oslo_limit", quota__driver=UNIFIED))
    assert found.state == doctor.BAD and "reader on system all" in found.cure


def test_source_then_it_is_the_first_section_that_names_an_auth_type(keystone: FakeKeystone) -> None:
    made = with_credentials(keystone.url, "keystone_authtoken")
    assert session.source(made, "glance") == "keystone_authtoken" and session.source(options(), "glance") is None
