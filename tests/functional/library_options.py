"""Options that oslo.messaging declares on its global configuration alone: a bus in a test has one of its own."""

from __future__ import annotations

import importlib
import importlib.util

from oslo_config import cfg

#: Module -> the name of its options and of their group; the library has the second one from 18.3 on.
OPTIONS = {"oslo_messaging._metrics.client": "oslo_messaging_metrics",
           "oslo_messaging._tracing.client": "oslo_messaging_tracing"}


def register(conf: cfg.ConfigOpts) -> None:
    for module, name in OPTIONS.items():
        if importlib.util.find_spec(module.rpartition(".")[0]):
            conf.register_opts(getattr(importlib.import_module(module), name), group=name)
