"""Contents of the guest: the kernel's modules, the ramdisk, the root file system's tree."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from guest.builder.packages import Packages
from guest.builder.shared import BuildError, run

GUEST = Path(__file__).resolve().parent.parent
GUEST_PACKAGES = (
    "busybox-static", "dropbear-bin", "libc6", "libcrypt1", "libtomcrypt1", "libtommath1", "libgmp10", "zlib1g",
    "e2fsprogs", "libext2fs2", "libcom-err2",
    "bsdutils", "qemu-guest-agent", "libglib2.0-0", "libpcre2-8-0", "libudev1", "libnuma1", "liburing2",
    "libatomic1", "libcap2",
)  # fmt: skip
GUEST_FILES = (  # (package, path in it, path in the guest's root)
    ("busybox-static", "bin/busybox", "bin/busybox"),
    ("dropbear-bin", "usr/sbin/dropbear", "usr/sbin/dropbear"),
    ("dropbear-bin", "usr/bin/dropbearkey", "usr/bin/dropbearkey"),
    ("e2fsprogs", "sbin/resize2fs", "sbin/resize2fs"),
    ("bsdutils", "usr/bin/script", "usr/bin/script"),
    ("qemu-guest-agent", "usr/sbin/qemu-ga", "usr/sbin/qemu-ga"),
)
LIBRARY_PACKAGES = {  # libraries of these programs: file name -> package
    "libc.so.6": "libc6",
    "ld-linux-x86-64.so.2": "libc6",
    "libatomic.so.1": "libatomic1",
    "libcrypt.so.1": "libcrypt1",
    "libtomcrypt.so.1": "libtomcrypt1",
    "libtommath.so.1": "libtommath1",
    "libgmp.so.10": "libgmp10",
    "libz.so.1": "zlib1g",
    "libext2fs.so.2": "libext2fs2",
    "libe2p.so.2": "libext2fs2",
    "libcap.so.2": "libcap2",
    "libcom_err.so.2": "libcom-err2",
    "libm.so.6": "libc6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgmodule-2.0.so.0": "libglib2.0-0",
    "libpcre2-8.so.0": "libpcre2-8-0",
    "libudev.so.1": "libudev1",
    "libnuma.so.1": "libnuma1",
    "liburing.so.2": "liburing2",
}


def wanted_modules() -> dict[str, bool]:
    """Return the modules of modules.txt: module name -> whether the ramdisk needs it."""
    lines = [line.split("#")[0].split() for line in (GUEST / "modules.txt").read_text().splitlines()]
    return {words[0].replace("-", "_"): "ramdisk" in words[1:] for words in lines if words}


def module_name(path: str) -> str:
    """Return a module's name in modprobe's form."""
    return Path(path).stem.replace("-", "_")


class Kernel:
    """A kernel package: its image, its uncompressed modules, and their dependencies (found by busybox's depmod)."""

    def __init__(self, package: Path, busybox: Path) -> None:
        self.busybox = busybox
        self.image = next((package / "boot").glob("vmlinuz-*"))
        self.version = self.image.name.removeprefix("vmlinuz-")
        top = package / "usr" if (package / "usr/lib/modules").is_dir() else package
        self.modules = top / "lib/modules" / self.version
        decompress(self.modules)
        run([busybox, "depmod", "-b", top, self.version])
        self.needs: dict[str, list[str]] = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            path, _, needed = line.partition(":")
            self.needs[path] = needed.split()
        self.built_in = {module_name(path) for path in (self.modules / "modules.builtin").read_text().splitlines()}

    def paths(self, names: Sequence[str]) -> set[str]:
        """Return the paths below lib/modules/VERSION of these modules and their dependencies, without built-in ones.
        Raises BuildError for a missing module."""
        by_name = {module_name(path): path for path in self.needs}
        names = [name for name in names if name not in self.built_in]
        unknown = sorted(set(names) - set(by_name))
        if unknown:
            raise BuildError(f"kernel {self.version} has no module {', '.join(unknown)}")
        found: set[str] = set()
        waiting = [by_name[name] for name in names]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                waiting += self.needs[path]
        return found

    def install_modules(self, root: Path, names: Sequence[str]) -> None:
        target = root / "lib/modules" / self.version
        for path in sorted(self.paths(names)):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.modules / path, target / path)
        run([self.busybox, "depmod", "-b", root, self.version])


def decompress(modules: Path) -> None:
    """Decompress the modules of Debian 13: busybox's modprobe cannot load all of them otherwise, and the whole disk is
    compressed anyway."""
    for packed in modules.rglob("*.ko.xz"):
        new = packed.with_suffix(".new")
        new.write_bytes(lzma.decompress(packed.read_bytes()))
        new.rename(packed.with_suffix(""))
        packed.unlink()


def make_ramdisk(kernel: Kernel, tree: Path, archive: Path) -> None:
    """Build the ramdisk, uncompressed: for an emulated processor, decompression costs more than a longer read."""
    for name in ("bin", "sbin", "dev", "proc", "sys", "root"):
        (tree / name).mkdir(parents=True)
    shutil.copy2(kernel.busybox, tree / "bin/busybox")
    run(["chroot", tree, "/bin/busybox", "--install", "-s", "/bin"])
    shutil.copy2(GUEST / "ramdisk-init", tree / "init")
    (tree / "init").chmod(0o755)
    kernel.install_modules(tree, [name for name, early in wanted_modules().items() if early])
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with archive.open("wb") as output:
        subprocess.run([kernel.busybox, "cpio", "-o", "-H", "newc"], cwd=tree, input=names.encode(), stdout=output,
                       stderr=subprocess.DEVNULL, check=True)  # fmt: skip


def find_library(packages: Packages, name: str) -> Path:
    package = LIBRARY_PACKAGES.get(name)
    if package is None:
        raise BuildError(f"a guest program needs {name}, but LIBRARY_PACKAGES does not name its package")
    return next(packages.unpacked(package).rglob(name)).resolve()


def needed_libraries(program: Path) -> list[str]:
    """Return the NEEDED entries of a 64-bit little-endian ELF file; a minimal Debian has no readelf."""
    data = program.read_bytes()
    offset, entry_size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, offset + index * entry_size) for index in range(count)]
    dynamic = next((header for header in headers if header[0] == 2), None)
    if dynamic is None:
        return []
    tags = list(struct.iter_unpack("<QQ", data[dynamic[2] : dynamic[2] + dynamic[5] // 16 * 16]))
    strings = dict(tags)[5]
    base = next(header[2] - header[3] for header in headers if header[0] == 1 and 0 <= strings - header[3] < header[5])
    starts = [base + strings + value for tag, value in tags if tag == 1]
    return [data[start : data.index(b"\0", start)].decode() for start in starts]


def install_libraries(packages: Packages, root: Path, programs: Sequence[Path]) -> None:
    waiting = list(programs)
    while waiting:
        for name in needed_libraries(waiting.pop()):
            target = root / "lib" / name
            if not target.exists():
                shutil.copy2(find_library(packages, name), target)
                waiting.append(target)
    (root / "lib64").symlink_to("lib")


def make_root(packages: Packages, kernel: Kernel, root: Path) -> None:
    """Build the root file system's tree, without kernel and ramdisk."""
    for name in ("bin", "sbin", "lib", "usr/bin", "usr/sbin", "dev", "proc", "sys", "run", "tmp", "mnt",
                 "var/lib/nova-guest", "var/log"):  # fmt: skip
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(GUEST / "rootfs", root, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for script in [*(root / "usr/lib/nova-guest").iterdir(), *(root / "etc/acpi/PWRF").iterdir(),
                   root / "usr/sbin/chpasswd"]:  # fmt: skip
        script.chmod(0o755)
    (root / "etc/shadow").chmod(0o600)
    (root / "root").mkdir(mode=0o700)
    for package, source, target in GUEST_FILES:
        shutil.copy2(packages.file(package, source), root / target)
    install_libraries(packages, root, [root / target for _, _, target in GUEST_FILES])
    run(["chroot", root, "/bin/busybox", "--install", "-s", "/bin"])
    for name in ("init", "getty", "poweroff", "reboot", "halt", "modprobe"):
        (root / "sbin" / name).symlink_to("../bin/busybox")
    kernel.install_modules(root, list(wanted_modules()))
