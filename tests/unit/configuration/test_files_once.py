"""A configuration file that is named twice counts once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.configuration.reading import each_file_once
from nova.virt.libvirt.settings import settings_of

SHOW = ("from nova import configuration\nimport sys\n"
        "options = configuration.read('nova-compute', configuration.beside(sys.argv[1:], 'nova-compute'))\n"
        "print(options.reserved_huge_pages, options.compute_driver)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """nova.conf and nova-compute.conf beside it, which has a repeatable option, as Debian's packages lay them."""
    (tmp_path / "nova.conf").write_text("[DEFAULT]\nhost = a\n")
    (tmp_path / "nova-compute.conf").write_text(
        "[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\nreserved_huge_pages = node:0,size:2048,count:64\n")
    return tmp_path


def shown(*words: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", SHOW, *words], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("words", [
    ["--config-file={}/nova.conf", "--config-file={}/nova-compute.conf"],
    ["--config-file", "{}/nova.conf", "--config-file", "{}/nova-compute.conf"],
    ["--config-file={}/nova.conf", "--config-file", "{}/nova-compute.conf",
     "--config-file={}/../{name}/nova-compute.conf"],
    ["--config-file={}/nova.conf"], []])
def test_file_beside_when_it_is_named_too_then_a_repeatable_option_has_each_value_once(folder: Path, words: list[str]
                                                                                      ) -> None:
    said = shown(*(word.format(folder, name=folder.name) for word in words), OS_NOVA_CONFIG_DIR=str(folder))
    assert said == "['node:0,size:2048,count:64'] libvirt.LibvirtDriver"


def test_file_when_it_is_a_link_to_one_that_is_named_then_it_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("")
    (tmp_path / "b.conf").symlink_to("a.conf")
    words = ["--debug", "--config-file", f"{tmp_path}/a.conf", "--config-file", f"{tmp_path}/b.conf", "--log-dir", "x"]
    assert each_file_once(words) == ["--debug", "--config-file", f"{tmp_path}/a.conf", "--log-dir", "x"]


def options(folder: Path, text: str) -> cfg.ConfigOpts:
    (folder / "x.conf").write_text(text)
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[str(folder / "x.conf")], default_config_dirs=[])
    return made


@pytest.mark.parametrize(("text", "cpu_s", "memory_mb"), [
    ("", 600, 4096), ("images_cpu_time_limit = 30\nimages_address_space_limit = 2\n", 30, 2048),
    ("image_tool_cpu_limit = 9\nimage_tool_memory_limit_mb = 500\nimages_cpu_time_limit = 30\n"
     "images_address_space_limit = 2\n", 9, 500)])
def test_bounds_of_qemu_img_when_they_have_upstreams_names_then_they_count_in_its_units(
        tmp_path: Path, text: str, cpu_s: int, memory_mb: int) -> None:
    made = options(tmp_path, f"[libvirt]\n{text}")
    found = settings_of(made, made.libvirt, made.vnc, made.compute)
    assert (found.tool_cpu_s, found.tool_memory_mb) == (cpu_s, memory_mb)


@pytest.mark.parametrize(("text", "told"), [
    ("my_ip = 192.0.2.1\n", "192.0.2.1"), ("my_ip = 192.0.2.1\nmy_block_storage_ip = 198.51.100.1\n", "198.51.100.1")])
def test_address_for_volumes_when_it_has_a_network_of_its_own_then_it_is_the_storage_address(
        tmp_path: Path, text: str, told: str) -> None:
    made = options(tmp_path, f"[DEFAULT]\n{text}")
    found = settings_of(made, made.libvirt, made.vnc, made.compute)
    assert (found.host_ip, found.storage_ip) == ("192.0.2.1", told)


@pytest.mark.parametrize(("text", "section", "name", "value"), [
    ("[DEFAULT]\nmanager_shutdown_timeout = 160\n", None, "graceful_shutdown_timeout", 160),
    ("[neutron]\ninterface = internal\n", "neutron", "valid_interfaces", ["internal"]),
    ("[glance]\ninterface = admin\n", "glance", "valid_interfaces", ["admin"])])
def test_option_when_upstream_has_another_name_for_it_then_both_are_read(
        tmp_path: Path, text: str, section: str | None, name: str, value: object) -> None:
    made = options(tmp_path, text)
    assert (made[section] if section else made)[name] == value
