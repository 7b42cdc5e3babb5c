"""Nodes of the bare metal service, which old versions passed on: no such service is behind this API."""

from __future__ import annotations

from nova import errors
from nova.api.request import Request


def index(req: Request) -> None:
    raise errors.host.BaremetalUnavailable


def show(req: Request, node_id: str) -> None:
    raise errors.host.BaremetalUnavailable


def create(req: Request) -> None:
    raise errors.host.BaremetalNotHere(command="node create")


def delete(req: Request, node_id: str) -> None:
    raise errors.host.BaremetalNotHere(command="node delete")


def add_interface(req: Request, node_id: str) -> None:
    raise errors.host.BaremetalNotHere(command="port create")


def remove_interface(req: Request, node_id: str) -> None:
    raise errors.host.BaremetalNotHere(command="port delete")
