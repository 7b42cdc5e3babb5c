"""The documents of versions in other forms than JSON: XML, and a feed of Atom."""

from __future__ import annotations

from collections.abc import Mapping

from nova.api.xml import negotiation, writer
from nova.api.xml.namespaces import ATOM
from nova.api.xml.writer import Node
from nova.model.base import Json

MEDIA_TYPES = (*negotiation.MEDIA_TYPES, negotiation.ATOM)
_TITLE, _AUTHOR, _AUTHORS_PAGE = "Available API Versions", "OpenStack", "http://www.openstack.org/"


def written(document: Mapping[str, Json], kind: str) -> bytes:
    """A document of versions (see nova.api.discovery) as ``kind``: XML or Atom."""
    if kind == negotiation.ATOM:
        return _feed(document.get("versions") or [document["version"]])
    return writer.write(document)


def _feed(versions: list[Mapping[str, Json]]) -> bytes:
    """A feed with an entry for each version. Its own id is where the first of them is, without the version."""
    address = _address(versions[0])
    address = address if len(versions) == 1 else address.rstrip("/").rpartition("/")[0] + "/"
    author = Node("author", inside=[Node("name", text=_AUTHOR), Node("uri", text=_AUTHORS_PAGE)])
    feed = Node("feed", inside=[
        Node("title", {"type": "text"}, text=_TITLE),
        Node("updated", text=max(version["updated"] for version in versions)),
        Node("id", text=address),
        Node("link", {"rel": "self", "href": address}),
        author,
        *map(_entry, versions)])
    return writer.rendered(feed, ATOM)


def _entry(version: Mapping[str, Json]) -> Node:
    told = f"Version {version['id']} {version['status']} ({version['updated']})"
    return Node("entry", inside=[
        Node("id", text=_address(version)),
        Node("title", {"type": "text"}, text=f"Version {version['id']}"),
        Node("updated", text=version["updated"]),
        Node("link", {"rel": "self", "href": _address(version)}),
        Node("content", {"type": "text"}, text=told)])


def _address(version: Mapping[str, Json]) -> str:
    return next(str(link["href"]) for link in version["links"] if link["rel"] == "self")
