"""The judges: what each runs, in which environment, beside which stand-ins."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.clients import ansible_play, cloud, gophercloud, libcloud_driver, sample_data, stand_ins, suites
from tests.clients.place import Place
from tests.clients.sample_data import Furnished
from tests.clients.verdict import Known, Ran, Verdict, known, verdict
from tests.fakes.wsgi_port import serving

LISTS = Path(__file__).with_name("known")
LOGS = Path(tempfile.gettempdir()) / "nova-clients-logs"  # of the last run's clouds and judges


class Court(NamedTuple):
    """A judge's surroundings. ``left_out``: tests that are not tried."""

    place: Place
    cloud: cloud.Cloud
    found: Furnished
    left_out: Sequence[Known]


class Judge(NamedTuple):
    """``venv``: the environment of bin/stack that has it; ``services``: stand-ins for the catalogue; ``unable``: why it
    cannot run on this machine; ``apart``: its tests count what a project has, so each worker is in another one;
    ``workers``: so many of its tests run side by side: more where they mostly sleep."""

    venv: str
    run: Callable[[Court], list[Ran]]
    services: tuple[str, ...] = ()
    unable: Callable[[], str | None] = lambda: None
    apart: bool = False
    workers: int = 2


def _suite(suite: suites.Suite, apart: bool = False, workers: int = 2) -> Judge:
    return Judge("judges", lambda court: suites.run(suite, court.place, court.left_out), suite.services, apart=apart,
                 workers=workers)


def _gophercloud(court: Court) -> list[Ran]:
    program = gophercloud.build(court.place.venv)
    return gophercloud.run(court.place, program, court.cloud, court.found, court.left_out)


#: Those that take longest come first.
JUDGES = {
    "openstackclient": _suite(suites.OPENSTACKCLIENT, workers=4),
    "novaclient": _suite(suites.NOVACLIENT, apart=True),
    "gophercloud": Judge("gophercloud", _gophercloud, ("network",), unable=gophercloud.unable),
    "openstacksdk": _suite(suites.SDK),
    "ansible": Judge("ansible", lambda court: ansible_play.run(court.place)),
    "libcloud": Judge("judges", lambda court: libcloud_driver.run(court.place, court.cloud)),
}
QUICK = ("ansible", "libcloud")


class Heard(NamedTuple):
    """What a judge said, and how long it took. ``unable``: why it said nothing."""

    name: str
    verdict: Verdict
    seconds: float
    unable: str | None = None


def hear(name: str, venvs: Path, speed: float) -> Heard:
    """One judge, on a cloud of its own; both leave their logs in LOGS."""
    judge, began = JUDGES[name], time.monotonic()
    if reason := judge.unable():
        return Heard(name, Verdict(skipped={name: reason}), 0.0, reason)
    folder = LOGS / name
    folder.mkdir(parents=True, mode=0o700)
    listed = known(LISTS / f"{name}.txt")
    place = Place(folder, venvs / judge.venv, judge.workers)
    with contextlib.ExitStack() as stack:
        made = stack.enter_context(cloud.running(folder, speed))
        address = stack.enter_context(serving(stand_ins.StandIns(made.endpoint("compute")))) if judge.services else ""
        found = sample_data.create_sample_data(made, dict.fromkeys(judge.services, address))
        sample_data.write_clouds(made, folder / "clouds.yaml")
        for number in range(judge.workers):
            project = sample_data.own_project(made, f"judge-{number}") if judge.apart else None
            sample_data.write_clouds(made, place.of_worker(number).folder / "clouds.yaml", project)
        results = judge.run(Court(place, made, found, [one for one in listed if not one.tried]))
    secret = made.login(cloud.ADMIN)["password"]
    results = [ran._replace(reason=ran.reason.replace(secret, "***")) for ran in results]  # commands are in some
    return Heard(name, verdict(results, listed, f"known/{name}.txt"), time.monotonic() - began)
