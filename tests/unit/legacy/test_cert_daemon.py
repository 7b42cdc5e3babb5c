"""nova-cert as a daemon: what it says when its folder cannot be used."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from nova import conf, errors
from nova.cmd.cert import Cert
from nova.rpc import buses


def test_start_when_the_folder_cannot_be_used_then_the_sentence_names_the_option(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "CA").write_text("no folder")
    options = conf.register(cfg.ConfigOpts())
    options([], default_config_files=[])
    options.set_override("ca_path", str(file))
    monkeypatch.setattr(buses, "control_bus", lambda *_: SimpleNamespace(client=lambda contract: None))
    with pytest.raises(errors.service.CannotStart, match=f"File exists. They are in ca_path = {file}"):
        Cert(options, 0).start()
