"""The driver where libvirt's library is not installed: a sentence that says what to install."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from pathlib import Path
import sys
sys.modules["libvirt"] = None  # importing it raises ImportError
from nova import errors
from nova.virt.libvirt.driver import LibvirtDriver
from nova.virt.libvirt.settings import LibvirtSettings
try:
    LibvirtDriver(LibvirtSettings(instances_path=Path("/i"), state_path=Path("/s")))
except errors.service.CannotStart as error:
    print(error.message)
"""


def test_driver_when_the_library_is_absent_then_it_cannot_start_and_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, timeout=60,
                          check=False)
    assert "libvirt cannot be used" in done.stdout and "libvirt-daemon" in done.stdout, done.stderr[-500:]
