"""Doctor's line about options that nobody reads, and those that do nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from nova import conf
from nova.configuration import libraries
from nova.manage import doctor
from nova.rpc import transport

INSTALLERS = Path(__file__).resolve().parents[4] / "shared" / "contract" / "installers.yaml"
CREDENTIALS = "auth_type = password\nauth_url = http://k\nusername = nova\npassword = s3cret\nproject_name = service\n"


def look(folder: Path, text: str, **others: str) -> doctor.Finding:
    """``others``: more files in the folder, by name without the ending."""
    (folder / "nova.conf").write_text(text)
    for name, content in others.items():
        (folder / f"{name.replace('_', '-')}.conf").write_text(content)
    made = conf.register(cfg.ConfigOpts())
    made(["--config-file", str(folder / "nova.conf")], project="nova", default_config_dirs=[])
    transport.open_transport(made)
    return doctor.unread(made)


@pytest.mark.parametrize("text", [
    "[DEFAULT]\ntransport_url = rabbit://a\nrpc_response_timeout = 9\nenabled_apis = metadata\nweb = /x\n",
    "[DEFAULT]\nlogdir = /x\n",  # an old name
    "[oslo_messaging_rabbit]\nssl = true\n[oslo_policy]\npolicy_file = p\n[cors]\nallowed_origin = x\n",
    f"[keystone_authtoken]\nmemcached_servers = m\n{CREDENTIALS}cafile = /x\n",
    f"[glance]\n{CREDENTIALS}region_name = one\n[neutron]\n{CREDENTIALS}[oslo_limit]\n{CREDENTIALS}",
    "[libvirt]\nvirt_type = kvm\n[vif_plug_ovs_privileged]\nuser = root\n[oslo_concurrency]\nlock_path = /x\n"])
def test_options_when_we_or_a_library_read_them_then_all_is_well(tmp_path: Path, text: str) -> None:
    found = look(tmp_path, text)
    assert found.state == doctor.OK, found.what


def test_options_of_the_sample_then_each_is_read(tmp_path: Path) -> None:
    """Their values are defaults: only names count."""
    sample = (Path(__file__).parents[3] / "etc" / "nova" / "nova.conf.sample").read_text()
    sample = sample.replace("auth_type = <None>", "auth_type = password")
    lines = [line.removeprefix("#") for line in sample.splitlines() if re.match(r"#?[a-z][a-z0-9_]* =|\[", line)]
    (tmp_path / "nova-sample.conf").write_text("\n".join(lines) + "\n")
    found = look(tmp_path, "[DEFAULT]\n")
    assert len(lines) > 400 and "unknown option" not in found.what, found.what


def test_options_and_credentials_in_one_process_then_neither_is_in_the_others_way(tmp_path: Path) -> None:
    """On oslo's global object, where libraries declare the same options in their own ways."""
    file = tmp_path / "nova.conf"
    file.write_text(f"[keystone_authtoken]\nmemcached_servers = m\ncafile = /x\n{CREDENTIALS}"
                    "http_request_max_retries = 0\n".replace("http://k", "http://127.0.0.1:9"))
    words = ["--config-file", str(file), "doctor", "--json", *(f"--check={name}" for name in ("options", "keystone"))]
    done = subprocess.run([sys.executable, "-m", "nova.manage.main", *words], capture_output=True, text=True,
                          check=False)
    found = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert found["options"]["state"] == "ok" and "Keystone issues no token for" in found["keystone"]["what"]
    assert done.returncode == 2


@pytest.mark.parametrize(("text", "said"), [
    ("[DEFAULT]\ncompute_drvier = x\n", "[DEFAULT]compute_drvier (in {file}, is it compute_driver?)"),
    ("[DEFAULT]\nvirt_type = kvm\n", "is it [libvirt]virt_type?"),
    ("[libvrit]\nvirt_type = kvm\n", "[libvrit]virt_type"), ("[nonsense]\nzzz = 1\n", "[nonsense]zzz (in {file})"),
    (f"[glance]\n{CREDENTIALS}pasword = x\n", "[glance]pasword (in {file}, is it password?)")])
def test_options_when_nobody_reads_one_then_it_fails_and_guesses_which_was_meant(tmp_path: Path, text: str, said: str
                                                                                ) -> None:
    found = look(tmp_path, text)
    assert found.state == doctor.BAD and said.format(file=tmp_path / "nova.conf") in found.what
    assert "s3cret" not in found.what + found.cure


@pytest.mark.parametrize(("text", "said"), [
    ("[quota]\nrecheck_quota = true\n", "[quota]recheck_quota (Usage is counted under a lock"),
    ("[libvirt]\ninject_password = true\n", "[libvirt]inject_password"),
    ("[placement]\nauth_type = password\n", "[placement]auth_type (Conductors claim")])
def test_options_when_one_does_nothing_then_a_warning_says_why(tmp_path: Path, text: str, said: str) -> None:
    found = look(tmp_path, text)
    assert found.state == doctor.WARN and said in found.what


def test_options_when_another_daemons_file_lies_beside_then_it_is_looked_at_too(tmp_path: Path) -> None:
    found = look(tmp_path, "[DEFAULT]\n", nova_conductor="[database]\nconection = sqlite://\n")
    assert found.state == doctor.BAD and "nova-conductor.conf, is it connection?" in found.what


DEPLOYED = """[DEFAULT]
root_helper = sudo nova-rootwrap /etc/nova/rootwrap.conf
[database]
max_retries = -1
[api_database]
max_retries = -1
[oslo_messaging_rabbit]
heartbeat_in_pthread = false
[glance]
connect_retries = 3
[vmware]
host_ip = 192.0.2.1
[mdev_nvidia-35]
device_addresses = 0000:84:00.0
"""


def test_options_when_they_are_novas_and_mean_nothing_here_then_all_are_named_and_it_is_a_warning(tmp_path: Path
                                                                                                ) -> None:
    found = look(tmp_path, DEPLOYED)
    assert found.state == doctor.WARN and "without effect: " in found.what and "is it" not in found.what
    names = re.findall(r"^(\w+) =", DEPLOYED, re.MULTILINE)
    assert all(re.search(rf"\]{name}[ ,]", found.what) for name in names), found.what


def test_options_when_many_are_misspelt_then_each_is_named(tmp_path: Path) -> None:
    wrong = [f"wrong_name_{number}" for number in range(30)]
    found = look(tmp_path, "[DEFAULT]\n" + "".join(f"{name} = 1\n" for name in wrong) + "[database]\nmax_retries = 1\n")
    assert found.state == doctor.BAD and "30 unknown options: " in found.what and "1 without effect: " in found.what
    assert all(f"[DEFAULT]{name} (" in found.what for name in wrong)


def test_options_when_one_is_far_from_every_name_then_nothing_is_guessed(tmp_path: Path) -> None:
    found = look(tmp_path, "[oslo_messaging_rabbit]\nheartbeat_of_the_whole_cloud = 1\n")
    assert found.state == doctor.BAD and "is it" not in found.what


@pytest.mark.skipif(not INSTALLERS.exists(), reason="the shared contract is not beside this checkout")
def test_options_of_deployment_tools_then_none_counts_as_misspelt(tmp_path: Path) -> None:
    sections: dict[str, list[str]] = {}
    for section, name in re.findall(r'o: "\[([\w-]+)\]([a-z][a-z0-9_]*)"', INSTALLERS.read_text()):
        sections.setdefault(section, []).append(name)
    text = "".join(f"[{section}]\n" + "".join(
        f"{name} = {'password' if name == 'auth_type' else 1}\n" for name in dict.fromkeys(["auth_type", *names])
        if name != "auth_type" or section in libraries.WITH_CREDENTIALS) for section, names in sections.items())
    (tmp_path / "nova.conf").write_text(text)
    found = doctor.unread(SimpleNamespace(config_file=[str(tmp_path / "nova.conf")], config_dir=[]))
    assert len(sections) > 20 and found.state == doctor.WARN, found.what.partition("without effect")[0]
