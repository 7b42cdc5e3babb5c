"""What nova-conductor makes of its options before it starts."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd import conductor_settings
from nova.model.numa.topology import PciRequest, PciSpec


def options(**of_pci: object) -> cfg.ConfigOpts:
    made = conf.register(cfg.ConfigOpts())
    made([], default_config_files=[])
    for name, value in of_pci.items():
        made.set_override(name, value, group="pci")
    return made


def test_settings_when_there_are_aliases_then_they_are_read():
    assert conductor_settings.settings(options()).pci_aliases == {}
    found = conductor_settings.settings(options(alias=['{"name": "gpu", "vendor_id": "10DE", "product_id": "1db4"}']))
    assert found.pci_aliases == {"gpu": PciRequest(
        count=1, alias="gpu", specs=(PciSpec(vendor_id="10de", product_id="1db4"),))}


def test_settings_when_an_alias_is_wrong_then_it_does_not_start_and_names_the_option():
    with pytest.raises(errors.host.PciBadAlias, match=r"\[pci\]alias.*vendor_id must be four hexadecimal digits"):
        conductor_settings.settings(options(alias=['{"name": "gpu", "vendor_id": "nvidia"}']))
