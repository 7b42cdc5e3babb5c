"""Length of five stories: the files and functions of nova that run when a server is created, resized, migrated, given a
volume and deleted.

    python -m tests.stories [--functions STORY] [--write]

Every story runs twice, over the API, a conductor, the scheduler and two hosts with the libvirt driver. What runs both
times is counted, except the modules in ``LEFT_OUT``, which serve every request in the same way. The program fails if a
figure exceeds ``limits.yaml`` by more than chance. ``--write`` lowers the limits to today's figures, and never raises
one. ``--functions`` prints what a reader of one story opens, in the order of the first calls.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from tests.stories.trace import Function, Recorder

LIMITS = Path(__file__).with_name("limits.yaml")
#: Path below nova/ -> why it is not counted.
LEFT_OUT = {
    "web/": "middleware", "api/dispatch.py": "middleware", "api/request.py": "middleware",
    "api/routing.py": "middleware", "api/discovery.py": "middleware", "api/faults.py": "middleware",
    "policies/": "access rules of every request", "rpc/": "RPC client and server", "db/": "SQL",
    "notifications/": "events", "conductor/engine/announce/": "events", "tracing.py": "events", "metrics.py": "events",
    "scheduler/": "one call of the story; a story of its own", "faults.py": "fault injection of tests",
    "failures.py": "failure policies",
    "gathering.py": "work shared by requests", "context.py": "request context", "concurrency.py": "threads",
    "decoding.py": "codec", "model/base.py": "codec", "errors/": "catalogue",
    "privileged/": "programs that run as another user", "compute/reports/": "reports", "conductor/hosts/": "reports"}
SLACK, FEW = 1.03, 2  # waits and retries run, or not, as threads meet
FIGURES = ("files", "functions", "lines", "except", "conductor files", "conductor functions")


def is_counted(function: Function) -> bool:
    """Return whether the function belongs to a story, and not to what serves all requests alike."""
    return not function.file.removeprefix("nova/").startswith(tuple(LEFT_OUT))


def figures(functions: Sequence[Function]) -> dict[str, int]:
    """Return the figures of a story by their names."""
    conductor = [one for one in functions if one.file.startswith("nova/conductor/")]
    values = (len({one.file for one in functions}), len(functions), sum(one.lines for one in functions),
              sum(one.handlers for one in functions), len({one.file for one in conductor}), len(conductor))
    return dict(zip(FIGURES, values, strict=True))


def traced(recorder: Recorder, folder: Path) -> dict[str, list[Function]]:
    """Run the stories in a new cloud below ``folder``, and return the counted functions of each."""
    from tests.fakes.small_cloud import make_templates
    from tests.stories.cloud import LibvirtCloud

    (templates := folder / "templates").mkdir(parents=True)
    (state := folder / "cloud").mkdir()
    cloud = LibvirtCloud(state, make_templates(templates))
    found = {}

    def run(name: str, story: Callable[[str], object], uuid: str = "") -> None:
        with recorder.recording():
            story(uuid)
        found[name] = [one for one in recorder.functions() if is_counted(one)]

    first = cloud.create()  # fills the caches of the hosts and of the policies
    run("create", lambda _: cloud.create())
    run("attach a volume", cloud.attach, first)
    cloud.detach(first)
    run("live migration", cloud.live_migrate, first)
    run("resize", cloud.resize, first)
    cloud.confirm(first)
    run("delete", cloud.delete, first)
    return found


def both(first: dict[str, list[Function]], second: dict[str, list[Function]]) -> dict[str, list[Function]]:
    """Return what ran in both passes: waits and retries depend on the time of a run."""
    return {story: [one for one in functions if one in second[story]] for story, functions in first.items()}


def check(found: dict[str, dict[str, int]], write: bool) -> list[str]:
    """Compare the figures with the limits, and return those that exceed them. ``write``: lower the limits."""
    limits = yaml.safe_load(LIMITS.read_text()) if LIMITS.exists() else {}
    if write:
        lowest = {story: {name: min(value, limits.get(story, {}).get(name, value)) for name, value in values.items()}
                  for story, values in found.items()}
        LIMITS.write_text(yaml.safe_dump(lowest, sort_keys=False))
        return []
    return [f"{story}: {value} {name}, at most {limits[story][name]}" for story, values in found.items()
            for name, value in values.items() if value > limits[story][name] * SLACK + FEW]


def main() -> int:
    """Run the program. Returns 1 if a story is longer than its limit."""
    parser = argparse.ArgumentParser(prog="python -m tests.stories", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--functions", metavar="STORY", help="print the functions of this story, such as create")
    parser.add_argument("--write", action="store_true", help="lower the limits to today's figures")
    chosen = parser.parse_args()
    if lacking := [name for name in ("qemu-img", "qemu-storage-daemon", "xorrisofs") if shutil.which(name) is None]:
        print(f"stories were not traced: {', '.join(lacking)} is absent")
        return 0
    recorder = Recorder()
    recorder.install()  # before the first thread starts
    folder = Path(tempfile.mkdtemp(prefix="stories"))
    try:
        stories = both(traced(recorder, folder / "first"), traced(recorder, folder / "second"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if chosen.functions:
        for one in stories[chosen.functions]:
            print(f"{one.file}:{one.line} {one.name} ({one.lines})")
        return 0
    found = {story: figures(functions) for story, functions in stories.items()}
    print(f"{'':16}", *(f"{name:>20}" for name in FIGURES))
    for story, values in found.items():
        print(f"{story:16}", *(f"{value:20}" for value in values.values()))
    wrong = check(found, chosen.write)
    for line in wrong:
        print(f"too long: {line}")
    return int(bool(wrong))


if __name__ == "__main__":
    code = 1
    try:
        code = main()
    except Exception:
        traceback.print_exc()
    finally:  # the clouds' threads never end
        sys.stdout.flush()
        os._exit(code)
