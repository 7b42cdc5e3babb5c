"""Who packaged this software, as the distribution's file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova import errors
from nova.distribution import Distribution, distribution
from nova.version import RELEASE


def test_distribution_when_there_is_no_file_then_it_is_upstreams_names_and_our_release(tmp_path: Path) -> None:
    assert distribution([tmp_path]) == Distribution("OpenStack Foundation", "OpenStack Nova", RELEASE)


def test_distribution_when_folders_have_files_then_the_first_one_is_read(tmp_path: Path) -> None:
    for name, vendor in (("first", "The RDO Project"), ("second", "Somebody")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "release").write_text(f"[Nova]\nvendor = {vendor}\nproduct = Cloud %\npackage = 1.el9\n")
    found = distribution([tmp_path / "none", tmp_path / "first", tmp_path / "second"])
    assert found == Distribution("The RDO Project", "Cloud %", f"{RELEASE}-1.el9")


@pytest.mark.parametrize("text", ["", "[Nova]\nvendor =\n", "[Other]\nvendor = x\n"])
def test_distribution_when_the_file_does_not_say_then_it_is_as_without(tmp_path: Path, text: str) -> None:
    (tmp_path / "release").write_text(text)
    assert distribution([tmp_path]) == Distribution()


@pytest.mark.parametrize("content", [b"vendor = x", b"\xff\xfe", b"[Nova]\nvendor\n"])
def test_distribution_when_the_file_is_no_ini_file_then_one_line_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "release").write_bytes(content)
    with pytest.raises(errors.config.Unusable) as caught:
        distribution([tmp_path])
    assert str(tmp_path / "release") in caught.value.message and "\n" not in caught.value.message
