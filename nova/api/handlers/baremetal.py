"""Nodes of the bare metal service, which old versions passed on: no such service is behind this API."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request


class NoBareMetal(errors.NotSupported):
    code = "baremetal.unavailable"
    message = "The bare metal service is not available here: its nodes can not be shown."


class AskBareMetal(errors.Invalid):
    code = "baremetal.not_here"
    message = "Nodes can not be changed here. Ask the bare metal service: openstack baremetal {command}."


def index(req: Request) -> None:
    raise NoBareMetal


def show(req: Request, node_id: str) -> None:
    raise NoBareMetal


def create(req: Request) -> None:
    raise AskBareMetal(command="node create")


def delete(req: Request, node_id: str) -> None:
    raise AskBareMetal(command="node delete")


def add_interface(req: Request, node_id: str) -> None:
    raise AskBareMetal(command="port create")


def remove_interface(req: Request, node_id: str) -> None:
    raise AskBareMetal(command="port delete")
