"""Runs clients' commands one after the other in the clients' environment: to import them costs most, so that is done
once, and each command runs in a fork, as in a process of its own.

Standard input: a JSON object a line, ``{"command": ["openstack", "server", "list"], "env": {...}}`` for what the
program of that name would do, or ``{"call": "compute.servers", "args": [], "kwargs": {}, "env": {...}}`` for a method
of openstacksdk's connection, where ``{"server": ID}`` stands for the server's object. Standard output: a line of JSON
for each.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import os
import pkgutil
import signal
import sys
import traceback
from types import ModuleType
from typing import Any

MAIN = {"openstack": "openstackclient.shell", "nova": "novaclient.shell"}
ALREADY = (*MAIN.values(), "novaclient.v2.shell", "openstack", "openstack.compute.v2._proxy",
           "openstack.image.v2._proxy", "openstackclient.compute.client", "openstackclient.identity.client",
           "openstackclient.image.client", "openstackclient.common.limits", "openstackclient.common.quota",
           "openstackclient.common.availability_zone")
SECONDS = 120  # a command that takes longer is ended
PACKAGE = "openstackclient.compute.v2"
PLUGIN = "osc_placement.resources"


def run(command: list[str]) -> dict[str, Any]:
    """As the program does it: ``main`` of its module, with its exit code and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    module = importlib.import_module(MAIN[command[0]])
    sys.argv = list(command)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = module.main(command[1:])
        except SystemExit as end:
            code = end.code
        except Exception:
            traceback.print_exc()
            code = 1
    return {"code": code if isinstance(code, int) else 0 if code is None else 1, "out": out.getvalue(),
            "err": err.getvalue()}


def call(path: str, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    sdk = importlib.import_module("openstack")
    connection: Any = sdk.connect(load_yaml_config=False)
    target = connection
    for name in path.split("."):
        target = getattr(target, name)
    try:
        args = [connection.compute.get_server(one["server"]) if isinstance(one, dict) and "server" in one else one
                for one in args]
        return {"value": plain(target(*args, **kwargs), sdk)}
    except Exception as error:
        status = getattr(error, "status_code", None)
        return {"error": type(error).__name__, "status": status, "message": str(error)}


def plain(value: Any, sdk: ModuleType) -> Any:
    if inspect.isgenerator(value) or isinstance(value, list | tuple):
        return [plain(one, sdk) for one in value]
    if isinstance(value, sdk.resource.Resource):
        return json.loads(json.dumps(value.to_dict(computed=False), default=str))
    return value if isinstance(value, dict | str | int | float | None) else str(value)


def in_a_fork(order: dict[str, Any]) -> str:
    """What the child answers; nothing when it died."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            signal.alarm(SECONDS)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nobody answers a question
            os.environ.update(order["env"])
            sys.stdin = os.fdopen(os.dup(0))
            done = run(order["command"]) if "command" in order else call(order["call"], order["args"], order["kwargs"])
            with os.fdopen(write, "w") as stream:
                stream.write(json.dumps(done))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what slips past a redirection spoils no answer
    package = importlib.import_module(PACKAGE)
    for name in (*ALREADY, *(f"{PACKAGE}.{module.name}" for module in pkgutil.iter_modules(package.__path__))):
        importlib.import_module(name)
    with contextlib.suppress(ModuleNotFoundError):  # where the plugin is not installed nobody asks for it
        plugin = importlib.import_module(PLUGIN)
        for module in pkgutil.iter_modules(plugin.__path__):
            importlib.import_module(f"{PLUGIN}.{module.name}")
    for line in sys.stdin:
        answers.write(in_a_fork(json.loads(line)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
