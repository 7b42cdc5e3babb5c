"""Vendor of this software's package, from the file ``release`` next to nova.conf, which distributions install.

An INI file with the section ``[Nova]`` and the keys ``vendor``, ``product`` and ``package``. Guests see them in their
SMBIOS tables, where software looks for the cloud's product.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nova import errors, failures
from nova.version import RELEASE

FILE, SECTION = "release", "Nova"


class Distribution(NamedTuple):
    """Vendor and product. ``version``: the release, followed by the number of the distribution's package, such as
    34.0.0-1.el9."""

    vendor: str = "OpenStack Foundation"
    product: str = "OpenStack Nova"
    version: str = RELEASE


def distribution(folders: Iterable[Path]) -> Distribution:
    """Return the distribution of the first directory that has the file. Raises config.Unusable if the file is
    invalid."""
    path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
    if path is None:
        return Distribution()
    read = configparser.ConfigParser(interpolation=None)
    with failures.replaced((OSError, ValueError, configparser.Error),
            lambda error: errors.config.Unusable(option=str(path), reason=str(error).splitlines()[0])):
        read.read_string(path.read_text(), str(path))
        said = {key: value.strip() for key, value in read.items(SECTION)} if read.has_section(SECTION) else {}
    usual = Distribution()
    version = f"{RELEASE}-{said['package']}" if said.get("package") else RELEASE
    return Distribution(said.get("vendor") or usual.vendor, said.get("product") or usual.product, version)
