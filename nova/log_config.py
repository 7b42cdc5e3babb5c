"""``log_config_append``: a file in the form of Python's own logging.config, which says all about log lines.

Such files name formatters of oslo.log. Those are made of ours, which know the request and the server of a line.
"""

from __future__ import annotations

import configparser
import logging
import logging.config

from nova import errors, log_formats
from nova.conf.base import Options

#: Formatters of other releases -> ours, which has the options that they read.
_OURS = {"oslo_log.formatters.ContextFormatter": "nova.log_formats.ContextFormat",
         "nova.openstack.common.log.ContextFormatter": "nova.log_formats.ContextFormat"}


def load(conf: Options, path: str) -> None:
    """Set all loggers up as the file says. config.Unusable: it cannot be read, or names what is not there."""
    if log_formats.wanted(conf):
        log_formats.check(conf)
    log_formats.ContextFormat.formats = log_formats.Formats.of(conf)
    said = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            said.read_file(file)
        _take_ours(said)
        logging.config.fileConfig(said, disable_existing_loggers=False)
    except OSError as error:
        raise _unusable(path, error.strerror or "it cannot be read") from error
    except Exception as error:  # fileConfig imports and calls whatever the file names
        raise _unusable(path, f"{type(error).__name__} in it") from error
    logging.captureWarnings(True)


def _take_ours(said: configparser.ConfigParser) -> None:
    for section in said.sections():
        if section.startswith("formatter_") and (found := said.get(section, "class", fallback="")) in _OURS:
            said.set(section, "class", _OURS[found])


def _unusable(path: str, why: str) -> errors.NovaError:
    return errors.config.Unusable(option="[DEFAULT]log_config_append", reason=f"{path} is not what Python's "
                                  f"logging.config.fileConfig reads ({why}). Correct the file, or take the option out")
