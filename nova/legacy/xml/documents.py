"""The version documents in formats other than JSON: XML and Atom feeds."""

from __future__ import annotations

from typing import TypedDict, cast

from nova.legacy.xml import negotiation, writer
from nova.legacy.xml.answers import Answer
from nova.legacy.xml.namespaces import ATOM
from nova.legacy.xml.writer import XMLElement

MEDIA_TYPES = (*negotiation.MEDIA_TYPES, negotiation.ATOM)
_TITLE, _AUTHOR, _AUTHORS_PAGE = "Available API Versions", "OpenStack", "http://www.openstack.org/"


class VersionLink(TypedDict):
    """A link of a version."""

    rel: str
    href: str


class ApiVersion(TypedDict):
    """A version of the API."""

    id: str
    status: str
    updated: str
    links: list[VersionLink]


class VersionsDocument(TypedDict, total=False):
    """The document of all versions, or of one."""

    versions: list[ApiVersion]
    version: ApiVersion


def written(document: VersionsDocument, kind: str) -> bytes:
    """Serialize a version document (see nova.api.discovery) as ``kind``: XML or Atom."""
    if kind == negotiation.ATOM:
        return _feed(document.get("versions") or [document["version"]])
    return writer.write(cast(Answer, document))


def _feed(versions: list[ApiVersion]) -> bytes:
    """Return a feed with an entry for each version. The feed's id is the URL of the first version, without the version.
    """
    address = _address(versions[0])
    address = address if len(versions) == 1 else address.rstrip("/").rpartition("/")[0] + "/"
    author = XMLElement("author", inside=[XMLElement("name", text=_AUTHOR), XMLElement("uri", text=_AUTHORS_PAGE)])
    feed = XMLElement("feed", inside=[
        XMLElement("title", {"type": "text"}, text=_TITLE),
        XMLElement("updated", text=max(version["updated"] for version in versions)),
        XMLElement("id", text=address),
        XMLElement("link", {"rel": "self", "href": address}),
        author,
        *map(_entry, versions)])
    return writer.rendered(feed, ATOM)


def _entry(version: ApiVersion) -> XMLElement:
    summary = f"Version {version['id']} {version['status']} ({version['updated']})"
    return XMLElement("entry", inside=[
        XMLElement("id", text=_address(version)),
        XMLElement("title", {"type": "text"}, text=f"Version {version['id']}"),
        XMLElement("updated", text=version["updated"]),
        XMLElement("link", {"rel": "self", "href": _address(version)}),
        XMLElement("content", {"type": "text"}, text=summary)])


def _address(version: ApiVersion) -> str:
    return next(str(link["href"]) for link in version["links"] if link["rel"] == "self")
