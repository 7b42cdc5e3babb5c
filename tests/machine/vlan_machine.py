"""A virtual machine for tests of 802.1Q, which this kernel may lack: Debian's kernel with its modules, and a ramdisk
of busybox, `ip`, Python, its libraries and our package, all taken from this machine. Emulated; no disk, no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
MODULES = ("8021q", "bridge", "veth")
LEFT_OUT = ("test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "distutils", "pydoc_data",
            "config-*", "site-packages", "dist-packages")
# What the program inside loads, told by a process that has loaded it: other packages' folders, and shared objects.
# nova imports pyroute2 where it is used first.
CLOSURE = """\
import sys, pyroute2, {module}
for name, module in sorted(sys.modules.items()):
    file = getattr(module, "__file__", None) or ""
    if file.endswith(".so"):
        print("so", file)
    if "-packages" in file and "." not in name:
        print("package", file)
"""
INIT = """\
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
hostname vlans
for module in {modules}; do modprobe $module || echo "no module $module"; done
ip link set lo up
NOVA_CONCURRENCY=threads PYTHONPATH=/checkout:/packages /usr/bin/python3 -S -m {module}
echo "vlan machine: exit $?"
poweroff -f
"""


class NotHere(Exception):
    """Such a machine can't be made here; the message says why."""


def ramdisk(kernel: object, scratch: Path, module: str) -> Path:
    """The initial ramdisk that runs ``python -m module``. ``kernel``: bin/guest's Kernel."""
    tree = scratch / "tree"
    for name in ("bin", "sbin", "dev", "proc", "sys", "tmp", "run", "usr/bin", "packages", "checkout/tests"):
        (tree / name).mkdir(parents=True)
    shutil.copy2(kernel.busybox, tree / "bin/busybox")  # type: ignore[attr-defined]
    _quiet(["chroot", tree, "/bin/busybox", "--install", "-s", "/bin"])
    (tree / "sbin/modprobe").symlink_to("../bin/busybox")
    kernel.install_modules(tree, MODULES)  # type: ignore[attr-defined]
    _programs(tree, _packages(tree, module))
    ours = {"nova": "nova", "tests/machine": "tests/machine"}
    for source, target in ours.items():
        shutil.copytree(CHECKOUT / source, tree / "checkout" / target, ignore=shutil.ignore_patterns("golden"))
    for package in ("tests", "tests/machine"):
        (tree / "checkout" / package / "__init__.py").touch()
    init = tree / "init"
    init.write_text(INIT.format(modules=" ".join(MODULES), module=module))
    init.chmod(0o755)
    return _packed(kernel, tree, scratch / "initrd")


def _packages(tree: Path, module: str) -> list[str]:
    """Put the packages that the module needs into the tree; shared objects it loads."""
    reported = subprocess.run([sys.executable, "-c", CLOSURE.format(module=module)], capture_output=True, text=True,
                              check=True, cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}).stdout
    objects = []
    for kind, file in (line.split(" ", 1) for line in reported.splitlines()):
        path = Path(file)
        if kind == "so":
            objects.append(file)
        elif path.parent.name.endswith("-packages"):
            shutil.copy2(path, tree / "packages")
        elif not (tree / "packages" / path.parent.name).exists():
            top = next(parent for parent in path.parents if parent.parent.name.endswith("-packages"))
            shutil.copytree(top, tree / "packages" / top.name, dirs_exist_ok=True)
    return objects


def _programs(tree: Path, objects: list[str]) -> None:
    python = Path(sys.executable).resolve()
    ip = shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if ip is None:
        raise NotHere("needs ip (iproute2)")
    shutil.copy2(python, tree / "usr/bin/python3")
    (tree / "bin/ip").unlink(missing_ok=True)  # busybox's knows no namespaces
    shutil.copy2(ip, tree / "bin/ip")
    library = Path(os.__file__).parent
    shutil.copytree(library, tree / str(library).lstrip("/"), ignore=shutil.ignore_patterns(*LEFT_OUT))
    needed = set()
    for file in (str(python), ip, *objects):
        needed |= set(re.findall(r"(/\S+) \(0x", _quiet(["ldd", file])))
    for file in needed:
        target = tree / file.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(file), target)


def _packed(kernel: object, tree: Path, archive: Path) -> Path:
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with archive.open("wb") as output:
        subprocess.run([str(kernel.busybox), "cpio", "-o", "-H", "newc"], cwd=tree,  # type: ignore[attr-defined]
                       input=names.encode(), stdout=output, stderr=subprocess.DEVNULL, check=True)
    return archive


def boot(kernel_image: Path, initrd: Path, seconds: float) -> str:
    """Run the machine to its end, for so many seconds at most; what it said on its console."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "768", "-smp", "1", "-nodefaults", "-display", "none",
               "-no-reboot", "-serial", "stdio", "-kernel", str(kernel_image), "-initrd", str(initrd), "-append",
               "console=ttyS0 quiet panic=-1"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
        said, end = done.stdout + done.stderr, ""
    except subprocess.TimeoutExpired as slow:
        said, end = slow.stdout or b"", f"not at its end within {seconds} s"
    return said.decode(errors="replace").replace("\r", "") + end


def _quiet(command: list[object]) -> str:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout
