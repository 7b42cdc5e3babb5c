"""Doctor's line about optional parts: absent ones that the configuration asks for are a warning with the fix."""

from __future__ import annotations

from typing import Any

import pytest

from nova.manage.doctor import OK, WARN, optional
from nova.manage.doctor.optional import optional_parts
from tests.unit.manage.test_doctor import options

PROXIES = ("nova-novncproxy", "nova-serialproxy")
#: Options that ask for a module -> the module, and the extra that has it.
ASKS = [({"tracing__otlp_endpoint": "http://127.0.0.1:4318"}, "opentelemetry", "tracing"),
        ({"instance_dns_manager": "nova.network.ldapdns.LdapDNS"}, "ldap3", "ldap")]


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of modules that are not found."""
    names: set[str] = set()
    find = optional.importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in names else find(name))
    return names


def test_parts_when_none_is_asked_for_then_all_is_well() -> None:
    assert optional_parts(options(), ())[:3] == (OK, "all optional packages that are used here are installed", "")


def test_pages_when_a_proxy_runs_here_without_them_then_a_warning_says_what_to_install(tmp_path: Any) -> None:
    found = optional_parts(options(web=str(tmp_path / "novnc")), PROXIES)
    assert found.state == WARN and "nova-novncproxy: the directory" in found.what
    assert "Debian's package novnc" in found.what and "run without them" in found.cure


def test_pages_when_novncproxy_serves_another_proxy_then_its_pages_are_looked_for_too(tmp_path: Any) -> None:
    made = options(web=str(tmp_path / "none"), console__with_novncproxy=["spicehtml5proxy"])
    assert "nova-spicehtml5proxy: " in optional_parts(made, ("nova-novncproxy",)).what


def test_pages_when_no_proxy_runs_here_then_nobody_misses_them(tmp_path: Any) -> None:
    assert optional_parts(options(web=str(tmp_path / "novnc")), ("nova-api",)).state == OK


@pytest.mark.parametrize(("asked", "module", "extra"), ASKS)
def test_module_when_an_option_asks_for_it_then_its_absence_is_a_warning(absent: set[str], asked: Any, module: str,
                                                                         extra: str) -> None:
    made = options(**asked)
    assert optional_parts(made, ()).state == OK
    absent.add(module)
    found = optional_parts(made, ())
    assert found.state == WARN and f"extra {extra}" in found.what
    assert optional_parts(options(), ()).state == OK, "nobody asks for it"


def test_os_brick_when_it_is_absent_on_a_compute_host_then_the_line_says_which_volumes_need_it(absent: set[str]
                                                                                              ) -> None:
    absent.add("os_brick")
    found = optional_parts(options(compute_driver="libvirt.LibvirtDriver"), ())
    assert found.state == OK and "iSCSI" in found.what and "extra brick" in found.what
