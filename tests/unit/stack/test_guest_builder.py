"""What bin/build-guest takes from Debian's packages: their names and places are not the same in each release."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guest.builder import packages as guest_packages
from guest.builder.packages import Packages
from guest.builder.shared import BuildError
from guest.builder.trees import Kernel

VERSION = "6.12.1-cloud-amd64"
#: Debian 12's and Debian 13's: /lib became /usr/lib.
TOPS = ("", "usr")
#: `apt-cache policy` where the packages of the file beside it can be installed, and others are names that they provide.
APT_CACHE = """#!/bin/sh
shift
for name; do
  echo "$name:"; echo "  Installed: (none)"
  if grep -qx "$name" "$(dirname "$0")/known"; then echo "  Candidate: 1.0"; else echo "  Candidate: (none)"; fi
done
"""


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    return Packages(tmp_path, refresh=False)


@pytest.fixture
def kernel(tmp_path: Path) -> Callable[[str, bool], Kernel]:
    """A kernel's package of two modules, one of which needs the other, and one that is built in."""
    def make(top: str, packed: bool) -> Kernel:
        package = tmp_path / "kernel"
        modules = package / top / "lib/modules" / VERSION
        (package / "boot").mkdir(parents=True)
        (package / "boot" / f"vmlinuz-{VERSION}").write_text("")
        (modules / "kernel").mkdir(parents=True)
        for name in ("virtio-ring.ko", "virtio_net.ko"):
            data = f"\x7fELF {name}".encode()
            (modules / "kernel" / (f"{name}.xz" if packed else name)).write_bytes(
                lzma.compress(data) if packed else data)
        (modules / "modules.builtin").write_text("kernel/drivers/virtio/virtio_pci.ko\n")
        return Kernel(package, _depmod(tmp_path))
    return make


def _depmod(folder: Path) -> Path:
    """A busybox that knows depmod alone."""
    program = folder / "busybox"
    net, ring = "kernel/virtio_net.ko", "kernel/virtio-ring.ko"
    program.write_text("#!/bin/sh\ncd $3/lib/modules/$4 || exit 1\n"
                       f"test ! -e {net} || echo '{net}: {ring}' > modules.dep\n"
                       f"test ! -e {ring} || echo '{ring}:' >> modules.dep\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
@pytest.mark.parametrize("top", TOPS, ids=["in /lib", "in /usr/lib"])
def test_modules_when_installed_then_uncompressed_with_what_they_need(tmp_path, kernel, top, packed):
    kernel(top, packed).install_modules(tmp_path / "root", ["virtio_net"])
    found = tmp_path / "root/lib/modules" / VERSION / "kernel"
    assert {path.name: path.read_text() for path in found.iterdir()} == {
        "virtio-ring.ko": "\x7fELF virtio-ring.ko", "virtio_net.ko": "\x7fELF virtio_net.ko"}


def test_module_when_built_into_the_kernel_then_needs_no_file_and_an_unknown_one_is_an_error(kernel):
    made = kernel("", False)
    assert made.paths(["virtio_pci"]) == set()
    with pytest.raises(BuildError, match="has no module nvram"):
        made.paths(["nvram", "virtio_pci"])


@pytest.mark.parametrize("place", ["bin/busybox", "usr/bin/busybox"])
def test_file_when_directories_are_merged_or_not_then_found(packages, place):
    there = packages.directory / "busybox-static" / place
    there.parent.mkdir(parents=True)
    there.write_text("")
    assert packages.file("busybox-static", "bin/busybox") == there


@pytest.mark.parametrize(("known", "library"), [
    (("libglib2.0-0", "libc6"), "libglib2.0-0"), (("libglib2.0-0t64", "libc6"), "libglib2.0-0t64"),
    ((), "libglib2.0-0")], ids=["Debian 12", "Debian 13", "no lists"])
def test_library_when_its_time_grew_then_fetched_by_its_new_name(packages, monkeypatch, tmp_path, known, library):
    asked = []
    (tmp_path / "known").write_text("".join(f"{name}\n" for name in known))
    (tmp_path / "apt-cache").write_text(APT_CACHE)
    (tmp_path / "apt-cache").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(guest_packages, "run", lambda command, **options: asked.append(command[-2:]))
    packages.download(["libglib2.0-0", "libc6"], packages.directory)
    assert asked == [[library, "libc6"]]


def test_package_when_renamed_then_unpacked_below_the_name_that_the_builder_asks_for(packages, monkeypatch):
    def run(command, **options):
        if command[0] == "dpkg":
            Path(command[-1]).mkdir()
    monkeypatch.setattr(guest_packages, "run", run)
    monkeypatch.setattr(packages, "download", lambda names, folder: (folder / "libext2fs2t64_1.47_amd64.deb").touch())
    packages.fetch(["libext2fs2"])
    assert (packages.directory / "libext2fs2").is_dir()
