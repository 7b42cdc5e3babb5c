"""Measurements of this host for the scheduler's MetricsFilter and MetricsWeigher, selected by ``compute_monitors``.

Names are upstream's. Times are in ns since the host booted, frequencies in MHz. A "percent" is a fraction from 0 to 1
of all processor time since the last measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from nova import errors

TICKS_A_SECOND = 100  # of /proc/stat, on every architecture that Linux has today
NS_A_TICK = 1_000_000_000 // TICKS_A_SECOND
KINDS = ("user", "kernel", "idle", "iowait")


class Monitor(Protocol):
    def metrics(self) -> Mapping[str, float]:
        """Return the current metrics; empty if they are unavailable."""


class _Ticks(NamedTuple):
    user: int
    kernel: int
    idle: int
    iowait: int

    @property
    def total(self) -> int:
        return sum(self)


def ticks(stat: str) -> _Ticks | None:
    """Return the total of all processors, from the text of ``/proc/stat``."""
    for line in stat.splitlines():
        words = line.split()
        if words and words[0] == "cpu" and len(words) >= 6 and all(word.isdecimal() for word in words[1:6]):
            user, nice, system, idle, iowait, *more = map(int, words[1:9])
            return _Ticks(user + nice, system + sum(more), idle, iowait)
    return None


def frequency(cpuinfo: str) -> float | None:
    """Return the mean frequency of all processors in MHz, from the text of ``/proc/cpuinfo``; None if it is not
    given."""
    found = []
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz":
            try:
                found.append(float(value))
            except ValueError:
                continue
    return round(sum(found) / len(found), 3) if found else None


class HostProcessors:
    """Monitor ``cpu.virt_driver``: utilization of the host's processors, from its kernel."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._last: _Ticks | None = None

    def metrics(self) -> Mapping[str, float]:
        """Return the metrics. Shares refer to the time since the last call; for the first call, since the host
        booted."""
        try:
            now = ticks((self._proc / "stat").read_text())
            mhz = frequency((self._proc / "cpuinfo").read_text())
        except OSError:
            return {}
        if now is None:
            return {}
        since = _Ticks(*(max(0, new - old) for new, old in zip(now, self._last, strict=True))) if self._last else now
        self._last = now
        shares = {kind: getattr(since, kind) / since.total if since.total else 0.0 for kind in KINDS}
        return {**({} if mhz is None else {"cpu.frequency": mhz}),
                **{f"cpu.{kind}.time": float(getattr(now, kind) * NS_A_TICK) for kind in KINDS},
                **{f"cpu.{kind}.percent": round(share, 4) for kind, share in shares.items()},
                "cpu.percent": round(1.0 - shares["idle"] - shares["iowait"] if since.total else 0.0, 4)}


MONITORS = {"cpu.virt_driver": HostProcessors}
PACKAGE = "nova.compute.monitors."  # upstream's package: some files give the whole path


def monitors(names: Iterable[str]) -> tuple[Monitor, ...]:
    """Return the monitors that the operator named. Raises host.NoMonitor."""
    known = list(dict.fromkeys(name.removeprefix(PACKAGE) for name in names))
    for name in known:
        if name not in MONITORS:
            raise errors.host.NoMonitor(name=name, known=", ".join(sorted(MONITORS)))
    return tuple(MONITORS[name]() for name in known)
