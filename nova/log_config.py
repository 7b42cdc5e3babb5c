"""Support for ``log_config_append``: a file in the format of Python's logging.config, which configures all logging.

Such files name formatters of oslo.log. They are replaced by nova's, which know the request and the server of a line.
"""

from __future__ import annotations

import configparser
import logging
import logging.config

from nova import errors, log_formats
from nova.conf._options import Options

#: Formatters of other releases -> nova's, which supports the options that they read.
_OURS = {"oslo_log.formatters.ContextFormatter": "nova.log_formats.ContextFormat",
         "nova.openstack.common.log.ContextFormatter": "nova.log_formats.ContextFormat"}


def load(conf: Options, path: str) -> None:
    """Configure all loggers from the file. Raises config.Unusable if it cannot be read, or names unknown objects."""
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
        raise _unusable(path, error.strerror or "cannot be read") from error
    except Exception as error:  # fileConfig imports and calls any object that the file names
        raise _unusable(path, f"{type(error).__name__} in the file") from error
    logging.captureWarnings(True)


def _take_ours(said: configparser.ConfigParser) -> None:
    for section in said.sections():
        if section.startswith("formatter_") and (found := said.get(section, "class", fallback="")) in _OURS:
            said.set(section, "class", _OURS[found])


def _unusable(path: str, why: str) -> errors.NovaError:
    return errors.config.Unusable(option="[DEFAULT]log_config_append", reason=f"{path} is not valid for Python's "
                                  f"logging.config.fileConfig ({why}). Correct the file, or remove the option")
