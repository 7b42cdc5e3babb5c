"""The command line of bin/build-debs."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from stacklib import packages
from stacklib.errors import StackError

from . import control, environment, trees
from .table import BUILDING, COMMON, PACKAGES

ABOUT = """\
Build Debian packages of nova: nova-common with all Python code and libraries in /usr/lib/nova, and a package for each
daemon. They are for the Debian release, the architecture and the Python version of the machine that builds them.

  bin/build-debs --output debs               build all packages, in some minutes; libraries come from pip's index
  apt install ./debs/nova-{common,api,conductor,scheduler,imageproxy}_*.deb       on a controller
  apt install ./debs/nova-{common,compute}_*.deb                                  on a compute host
  bin/build-debs --revision 2                the same release with newer libraries, as an upgrade for apt
  bin/build-debs --constraints /usr/share/doc/nova-common/dependencies
                                             use the library versions of a package that is installed on this machine

No root is needed. Files have the time of the commit, or SOURCE_DATE_EPOCH. DEBFULLNAME and DEBEMAIL set the maintainer.
doc/install.rst describes the installation, upgrade and removal of the packages.
"""
LOG = Path(tempfile.gettempdir()) / f"nova-build-debs-{os.getuid()}.log"


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="bin/build-debs", description=ABOUT,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--output", type=Path, default=Path("debs"), metavar="DIR",
                     help="output directory of the packages (default: debs)")
    top.add_argument("--revision", type=_positive, default=1, metavar="N",
                     help="Debian revision of the packages of this release (default: 1)")
    top.add_argument("--constraints", type=Path, metavar="FILE", help="versions of libraries: a pip constraints file")
    return top


def _positive(word: str) -> int:
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a positive number")
    return int(word)


def check_tools() -> None:
    """Raise StackError if a build dependency is not installed."""
    if missing := packages.not_installed_of(BUILDING):
        raise StackError(f"not installed: {', '.join(missing)}", f"apt-get install {' '.join(missing)}")


def check_output(folder: Path, release: control.Release) -> None:
    """Raise StackError if the folder has packages of another version: nova-api_*.deb would match two files."""
    if others := [path for path in folder.glob("nova-*.deb") if f"_{release.in_names}_" not in path.name]:
        raise StackError(f"{folder} has packages of another version: {others[0].name}",
                         "name another folder with --output, or move them away")


def build(options: argparse.Namespace, work: Path) -> list[Path]:
    """Build all packages in the output folder and return their paths. Raises StackError."""
    if options.constraints and not options.constraints.is_file():
        raise StackError(f"{options.constraints} is not a file", "--constraints needs a file with lines NAME==VERSION")
    check_tools()
    release = control.Release(control.version(options.revision), control.architecture(), control.python(),
                              control.libvirt(), control.seconds())
    check_output(options.output, release)
    maker = environment.Maker(work, LOG, options.constraints)
    tree = {package.name: work / "trees" / package.name for package in PACKAGES}
    major, minor = release.python
    _say(f"{release.version} for {release.architecture}, Python {major}.{minor}, libvirt {release.libvirt}")
    dependencies = maker.common(tree[COMMON]) + maker.libvirt(tree["nova-compute"], release)
    environment.move(tree[COMMON])
    environment.record(tree[COMMON], dependencies)
    for name in (COMMON, "nova-compute"):
        maker.compile(tree[name], release)
    _say(f"libraries: {len(dependencies.splitlines())}")
    options.output.mkdir(parents=True, exist_ok=True)
    made = []
    for package in PACKAGES:
        trees.complete(package, tree[package.name], release)
        made.append(trees.pack(package, tree[package.name], options.output, release))
        _say(f"{made[-1]} ({made[-1].stat().st_size / 1e6:.1f} MB)")
    return made


def main(argv: list[str]) -> int:
    options = parser().parse_args(argv)
    os.umask(0o022)
    LOG.write_text("")
    work = Path(tempfile.mkdtemp(prefix="nova-debs-"))
    started = time.monotonic()
    try:
        made = build(options, work)
    except (StackError, OSError) as error:
        print(f"build-debs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nbuild-debs: interrupted", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(work, ignore_errors=True)
    _say(f"{len(made)} packages in {options.output}, in {time.monotonic() - started:.0f} s")
    return 0


def _say(text: str) -> None:
    print(f"build-debs: {text}", file=sys.stderr, flush=True)
