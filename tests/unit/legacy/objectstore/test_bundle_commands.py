"""Bundles that others' programs make, by the commands of doc/bundles.rst as they stand there, and a real nova-cert."""

from __future__ import annotations

import subprocess
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from nova import conf
from nova.legacy.cert.service import CertService
from nova.legacy.objectstore.bundles.service import of_options
from nova.model.image.bundles import RegisterBundle
from tests.fakes.bundle_world import BUCKET, OWNER, BundleWorld, glance_at
from tests.fakes.bundles import put
from tests.fakes.glance import FakeGlance

PAGE = Path(__file__).resolve().parents[4] / "doc/bundles.rst"
HOLE = 2 ** 20
#: With holes, for which ``tar -S`` writes another kind of member.
SPARSE = b"begins" + bytes(HOLE) + b"middle" * 5000 + bytes(HOLE) + b"ends"


@pytest.fixture
def glance() -> Iterator[FakeGlance]:
    with FakeGlance() as fake:
        yield fake


def commands() -> str:
    """The block of the page that makes a bundle."""
    page = PAGE.read_text()
    begin = page.index("::", page.index("Then bundle the image")) + 2
    block = page[begin:page.index("\nFor a kernel", begin)]
    assert "openssl enc" in block and "split" in block
    return textwrap.dedent(block)


def write_sparse(path: Path, data: bytes) -> None:
    with path.open("wb") as out:
        for start in range(0, len(data), 4096):
            piece = data[start:start + 4096]
            out.seek(len(piece), 1) if not any(piece) else out.write(piece)
        out.truncate(len(data))


@pytest.mark.parametrize("use_project_ca", [False, True])
@pytest.mark.parametrize("data", [b"an image" * 1000, SPARSE], ids=["plain", "sparse"])
def test_commands_when_they_are_run_then_the_image_is_made_of_their_bundle(
        tmp_path: Path, glance: FakeGlance, data: bytes, use_project_ca: bool) -> None:
    options = conf.register(cfg.ConfigOpts())
    options([], project="nova", default_config_files=[])
    options.set_override("state_path", str(tmp_path))
    options.set_override("use_project_ca", use_project_ca)
    cert = CertService(options, None)
    cert.start()
    here = tmp_path / "here"
    here.mkdir()
    (here / "cacert.pem").write_text(cert.fetch_ca(OWNER))
    write_sparse(here / "disk.img", data)
    subprocess.run(["sh", "-e", "-c", commands()], cwd=here, check=True, timeout=60)
    assert ((here / "disk.img.tar").stat().st_size > len(data)) == (data is not SPARSE), "tar keeps no holes"
    world = BundleWorld(tmp_path, glance.url)
    for path in here.glob("disk.img.*"):
        if "part" in path.name or path.suffix == ".xml":
            put(world.store, OWNER, BUCKET, path.name, path.read_bytes())
    service = of_options(options, world.store, glance_at(glance.url), cert)
    service.start()
    answer = service.register_image(RegisterBundle(location=f"{BUCKET}/disk.img.manifest.xml", project_id=OWNER))
    deadline = time.monotonic() + 20
    while service.busy() and time.monotonic() < deadline:
        time.sleep(0.02)
    service.stop(1)
    assert glance.images[answer.image_id]["image_state"] == "available"
    assert glance.data[answer.image_id] == data
