"""A nova.conf of a deployment, given to nova-all: the pretended machines stay where they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.configuration.validation import ours
from nova.devel.nova_all import own_options
from nova.devel.nova_all.state_directory import StateDirectory


def read(*files: str) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([word for file in files for word in ("--config-file", file)], project="nova", default_config_dirs=[])
    return made


@pytest.fixture
def home(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "home")


def value(options: cfg.ConfigOpts, section: str, name: str) -> object:
    return (options if section == "DEFAULT" else options[section])[name]


def test_own_options_when_a_file_overrides_all_of_them_then_each_keeps_its_value_and_is_named(
        home: StateDirectory, tmp_path: Path) -> None:
    made, theirs = tmp_path / "made.conf", tmp_path / "theirs.conf"
    made.write_text("[DEFAULT]\nstate_path = /home/a$$b\nhost = controller\nhosts_transport_url = local:///x\n"
                    "[database]\nconnection = sqlite:////x\n")
    kinds = {(group, option.dest): option for group, option in ours()}
    wrong = {"connection": "mysql://h/x", "hosts_transport_url": "rabbit://h/", "enabled": "false", "workers": "9",
             "fake_network": "true", "listen": "192.0.2.1", "host": "theirs"}
    theirs.write_text("".join(f"[{section}]\n" + "".join(
        f"{name} = {wrong.get(name, '9' if 'port' in name else '/theirs')}\n" for name in names)
        for section, names in own_options.OWN.items()))
    last, line = own_options.keep(home, str(made), [str(theirs)])
    assert last is not None
    before, after = read(str(made)), read(str(made), str(theirs), last)
    for section, names in own_options.OWN.items():
        for name in names:
            assert (section, name) in kinds and f"[{section}]{name}" in line
            assert (value(after, section, name) or None) == (value(before, section, name) or None), name


@pytest.mark.parametrize("text", [
    "", "[glance]\nnum_retries = 1\n", "no option\n", "[keystone_authtoken]\npassword=x\n"])
def test_own_options_when_a_file_overrides_none_then_nothing_is_said(
        home: StateDirectory, tmp_path: Path, text: str) -> None:
    (tmp_path / "theirs.conf").write_text(text)
    assert own_options.keep(home, str(tmp_path / "theirs.conf"), [str(tmp_path / "theirs.conf")]) == (None, "")
    assert own_options.keep(home, "/nosuch", ["/nosuch"]) == (None, "")
