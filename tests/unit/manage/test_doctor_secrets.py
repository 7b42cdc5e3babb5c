"""``nova-manage doctor``: secrets in files that other daemons can read are named, and nothing of them is shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.manage.doctor.finding import OK, WARN, Finding
from nova.manage.doctor.secret_files import secret_files

BROKER = "[DEFAULT]\ntransport_url = rabbit://nova:s3cret@mq/nova\n"
BOUNDED = "[image_proxy]\nservers = http://controller:9293\n"
KEYSTONE = "[keystone_authtoken]\nusername = nova\npassword = s3cret\n"


def check(folder: Path, files: Mapping[str, tuple[str, int]], bounded: bool = True) -> Finding:
    for name, (text, mode) in files.items():
        (folder / name).write_text(text + (BOUNDED if name == "nova.conf" and bounded else ""))
        (folder / name).chmod(mode)
    options = conf.register(cfg.ConfigOpts())
    options(["--config-file", str(folder / "nova.conf")])
    return secret_files(options)


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o604])
def test_secret_when_others_can_read_its_file_then_a_warning_names_file_and_option(tmp_path: Path, mode: int) -> None:
    found = check(tmp_path, {"nova.conf": (BROKER + KEYSTONE, mode)})
    path = tmp_path / "nova.conf"
    assert found.state == WARN and "nova-manage secrets split" in found.cure
    assert f"[DEFAULT]transport_url in {path}" in found.what
    assert {"option": "[keystone_authtoken]password", "file": str(path)} in found.details and "s3cret" not in str(found)


def test_secret_when_it_is_in_a_daemons_own_file_then_all_is_well(tmp_path: Path) -> None:
    found = check(tmp_path, {"nova.conf": ("[keystone_authtoken]\nusername = nova\n", 0o640),
                             "nova-scheduler.conf": (BROKER, 0o600), "nova-api.conf": (BROKER + KEYSTONE, 0o400)})
    assert found.state == OK


def test_secret_when_a_daemons_own_file_is_open_then_that_file_is_named(tmp_path: Path) -> None:
    found = check(tmp_path, {"nova.conf": (BROKER, 0o600), "nova-api.conf": (KEYSTONE, 0o640)})
    assert found.state == WARN and "nova-api.conf" in found.what and "nova.conf," not in found.what


def test_secret_of_a_host_then_its_daemons_share_it(tmp_path: Path) -> None:
    text = "[DEFAULT]\nhosts_transport_url = rabbit://host-a:b@mq/nova-hosts\n"
    found = check(tmp_path, {"nova.conf": (text, 0o640)})
    assert found.state == OK and "a compute host" in found.what


def test_secret_in_upstream_mode_then_it_is_every_daemons(tmp_path: Path) -> None:
    assert check(tmp_path, {"nova.conf": (BROKER + KEYSTONE, 0o640)}, bounded=False).state == OK
