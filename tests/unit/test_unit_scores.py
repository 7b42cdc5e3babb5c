"""How far systemd shields daemons that have a privileged helper: by its own measure, 0 (all) to 10 (nothing)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
UNITS, DROP_INS = TOP / "etc/systemd", TOP / "etc/drop-ins"
SECURITY = (TOP / "doc/security.rst").read_text()
#: Unit, drop-in -> the most that it may score.
MOST = {("nova-compute", ""): 3.0, ("nova-network", ""): 3.0, ("nova-privileged", ""): 6.0,
        ("nova-compute", "with-sudo"): 6.5, ("nova-network", "with-sudo"): 6.5,
        ("nova-compute", "as-root"): 6.5, ("nova-network", "as-root"): 6.5}

pytestmark = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")


def score(unit: str, drop_in: str, folder: Path) -> float:
    """A drop-in's lines stand behind the unit's own, as systemd reads them."""
    text = (UNITS / f"{unit}.service").read_text().partition("[Install]")[0]
    text += (DROP_INS / f"{drop_in}.conf").read_text() if drop_in else ""
    made = folder / f"{unit}.service"
    made.write_text(text)
    said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(made)],
                          capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said.stdout)
    if found is None:
        pytest.skip(f"systemd-analyze does not measure files here: {said.stderr[:200]}")
    return float(found[1])


@pytest.mark.parametrize(("unit", "drop_in"), MOST)
def test_unit_when_it_is_measured_then_it_scores_below_its_bound_and_as_the_page_says(unit: str, drop_in: str,
                                                                                       tmp_path: Path) -> None:
    found = score(unit, drop_in, tmp_path)
    assert found < MOST[unit, drop_in]
    name = f"``{unit}``, {drop_in}.conf" if drop_in else f"``{unit}``"
    (row,) = re.findall(rf"^   \* - {name}\n     - ([\d.]+)$", SECURITY, re.M)
    assert abs(found - float(row)) <= 0.3, "releases of systemd measure differently in little"
