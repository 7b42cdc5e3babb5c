"""What a console proxy makes of its options before it listens, and how it refuses."""

from __future__ import annotations

import resource
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd import console_proxy
from nova.conf import proxies
from nova.configuration.command_line import spelt
from nova.console import kinds
from tests.fakes.console_papers import Authority


def options(**of_groups: object) -> cfg.ConfigOpts:
    """``group__name=value``; a name alone is of [DEFAULT]."""
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, value in of_groups.items():
        group, _, option = name.rpartition("__")
        made.set_override(option, value, group=group or None)
    return made


@pytest.fixture
def web(tmp_path: Path) -> str:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "vnc_auto.html").write_text("<head>")
    return str(folder)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    made = Authority(tmp_path_factory.mktemp("papers")).issue("proxy", server=True)
    return made.cert, made.key


def test_parts_when_there_is_no_certificate_then_tls_is_off_unless_it_is_the_only_way(web: str) -> None:
    parts = console_proxy.ProxyParts(options(web=web, cert="/none.pem"), kinds.NOVNC)
    assert parts.tls is None and parts.pages.files is not None and "session.js" in parts.pages.own
    with pytest.raises(console_proxy.BadSetting, match="/none.pem"):
        console_proxy.ProxyParts(options(web=web, cert="/none.pem", ssl_only=True), kinds.NOVNC)


def test_parts_when_there_is_a_certificate_then_tls_is_as_the_options_say(web: str, papers: tuple[str, str]) -> None:
    cert, key = papers
    settings = options(web=web, cert=cert, key=key, console__ssl_minimum_version="tlsv1_3")
    parts = console_proxy.ProxyParts(settings, kinds.NOVNC)
    assert parts.tls.minimum_version == ssl.TLSVersion.TLSv1_3 and not parts.tls_only
    with pytest.raises(console_proxy.BadSetting, match="No such file or directory: '/none.key'"):
        console_proxy.ProxyParts(options(web=web, cert=cert, key="/none.key"), kinds.NOVNC)
    for wrong in ({"key": cert}, {"key": key, "console__ssl_ciphers": "NONSENSE"}):
        with pytest.raises(console_proxy.BadSetting, match="cannot be used"):
            console_proxy.ProxyParts(options(web=web, cert=cert, **wrong), kinds.NOVNC)


def test_parts_when_an_option_names_a_directory_that_is_missing_then_the_words_name_it(web: str) -> None:
    with pytest.raises(console_proxy.BadSetting, match=r"missing directory /nowhere \(--web or \[DEFAULT\]web\)"):
        console_proxy.ProxyParts(options(web="/nowhere"), kinds.NOVNC)
    with pytest.raises(console_proxy.BadSetting, match="recorded in /nowhere"):
        console_proxy.ProxyParts(options(web=web, record="/nowhere/session"), kinds.NOVNC)


def test_viewers_proxy_has_no_pages_and_no_tls_alone() -> None:
    parts = console_proxy.ProxyParts(options(web="/nowhere", cert="/none.pem", ssl_only=True), kinds.XVPVNC)
    assert parts.raw and parts.pages.files is None and not parts.tls_only


def test_settings_are_those_of_the_groups() -> None:
    made = options(console__allowed_origins=["a.example"], console__session_idle_timeout=7, console__session_timeout=8,
                   consoleauth__enforce_session_timeout=True, record="/x/y", console__reachable_networks=["10.0.0.0/8"])
    found = console_proxy.settings(made, kinds.NOVNC)
    assert (found.allowed_origins, found.idle_s, found.total_s) == (("a.example",), 7, 8)
    assert found.until_expiry and found.record == "/x/y" and found.reach.networks
    with pytest.raises(errors.Invalid, match="reachable_networks"):
        console_proxy.settings(options(console__reachable_networks=["nonsense"]), kinds.NOVNC)


def test_bind_when_the_port_is_taken_then_the_option_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        made = options(vnc__novncproxy_host="127.0.0.1", vnc__novncproxy_port=taken.getsockname()[1])
        with pytest.raises(errors.service.CannotStart, match=r"\[vnc\]novncproxy_host, novncproxy_port"):
            console_proxy.bind(made, kinds.NOVNC)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this machine has no IPv6")
def test_bind_when_ipv6_is_wanted_then_it_listens_there() -> None:
    with console_proxy.bind(options(source_is_ipv6=True, vnc__novncproxy_host="::1", vnc__novncproxy_port=0),
                            kinds.NOVNC) as sock:
        assert sock.family == socket.AF_INET6


def test_words_with_dashes_are_understood() -> None:
    assert spelt(["--ssl-only", "--cert", "--x", "--source-is-ipv6", "--nossl-only"], proxies.CLI_OPTS) == [
        "--ssl_only", "--cert", "--x", "--source_is_ipv6", "--nossl_only"]


def test_more_files_takes_no_more_than_it_may() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        console_proxy.more_files(10)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert soft >= min(before[1] if before[1] > 0 else soft, 2080) and hard == before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_program_when_tls_alone_is_wanted_without_a_certificate_then_255_and_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "nova.conf").write_text("")
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "nova.cmd.novncproxy", "--config-file",
                           str(tmp_path / "nova.conf"), "--ssl-only", "--cert", "/none.pem"],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 255
    assert done.stderr.splitlines()[-1].startswith("nova-novncproxy: ssl_only requires TLS")
