"""Common operations of FakeNeutron's resources: list, show, create (one or many), update and delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple

from nova.devel.network import lists
from nova.devel.network.kinds import NetworkError, NeutronKind, Record, checked
from nova.devel.network.records import NeutronResource
from nova.devel.network.store import FakeNetworkStore, check_revision, check_writer, touch
from nova.devel.service import FakeAnswer, FakeCall, FakeRoute, TokenOwner
from nova.model.base import JsonValue


class NetworkResource(NamedTuple, Generic[Record]):
    """A kind of resource with its own functions: ``make`` (project, members) adds a new one to the store; ``change``
    writes members; ``remove`` deletes one. ``look``: prepares a list. Each raises NetworkError."""

    kind: NeutronKind[Record]
    make: Callable[[FakeNetworkStore, TokenOwner, str, Record], Record]
    change: Callable[[FakeNetworkStore, TokenOwner, Record, Record], None]
    remove: Callable[[FakeNetworkStore, TokenOwner, Record], None]
    look: Callable[[FakeNetworkStore, FakeCall], None] = lambda store, call: None

    def list_all(self, store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """GET: list resources. Raises 400."""
        self.look(store, call)
        return lists.page(store, self.kind, call)

    def show(self, store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """GET one resource. Raises 404, also if the caller may not see it."""
        thing = store.seen(self.kind, call.named["key"], call.caller)
        shown = store.shown(self.kind, thing, call.caller)
        return {self.kind.name: lists.with_fields(shown, lists.query_of(call))}

    def create(self, store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """POST one resource or many, which are created all or not at all. Raises 400, 403, 404 or 409."""
        body, kind = call.body(), self.kind
        many = body.get(kind.plural) if isinstance(body, dict) else None
        with store.whole():
            if many is None:
                return {kind.name: self._created(store, call, call.member(kind.name))}
            given = [one for one in many if isinstance(one, dict)] if isinstance(many, list) else []
            if not isinstance(many, list) or len(given) < len(many):
                raise NetworkError(400, "HTTPBadRequest", f"'{kind.plural}' must be an array of objects")
            return {kind.plural: [self._created(store, call, one) for one in given]}

    def _created(self, store: FakeNetworkStore, call: FakeCall, given: Mapping[str, JsonValue]) -> dict[str, object]:
        check_writer(call.caller, f"create_{self.kind.name}")
        project_id = str(given.get("project_id") or given.get("tenant_id") or call.caller.project_id or "")
        members = checked(self.kind, given, call.caller, is_new=True)
        store.check_quota(self.kind, project_id)
        return store.shown(self.kind, self.make(store, call.caller, project_id, members), call.caller)

    def update(self, store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """PUT changes of a resource. Raises 400, 403, 404, 409 or 412."""
        thing = store.own(self.kind, call.named["key"], call.caller)
        check_revision(thing, call)
        given = checked(self.kind, call.member(self.kind.name), call.caller, is_new=False)
        with store.whole():
            self.change(store, call.caller, thing, given)
        return {self.kind.name: store.shown(self.kind, thing, call.caller)}

    def delete(self, store: FakeNetworkStore, call: FakeCall) -> None:
        """DELETE a resource. Raises 403, 404, or 409 if it is in use."""
        thing = store.own(self.kind, call.named["key"], call.caller)
        check_revision(thing, call)
        with store.whole():
            self.remove(store, call.caller, thing)

    @property
    def routes(self) -> tuple[FakeRoute[FakeNetworkStore], ...]:
        """Routes of all operations."""
        one = f"{self.kind.path}/{{key}}"
        return (FakeRoute("GET", self.kind.path, self.list_all), FakeRoute("GET", one, self.show),
                FakeRoute("POST", self.kind.path, self.create, success=201), FakeRoute("PUT", one, self.update),
                FakeRoute("DELETE", one, self.delete, success=204))


def written(store: FakeNetworkStore, caller: TokenOwner, thing: NeutronResource, given: NeutronResource) -> None:
    """Write the members, for kinds without further rules."""
    touch(thing, given)


# --- tags


def tag_routes(kind: NeutronKind[Record]) -> tuple[FakeRoute[FakeNetworkStore], ...]:
    """Return the routes of one kind's tags (standard-attr-tag)."""
    all_of, one = f"{kind.path}/{{key}}/tags", f"{kind.path}/{{key}}/tags/{{tag}}"

    def found(store: FakeNetworkStore, call: FakeCall) -> Record:
        if call.http.method in ("GET", "HEAD"):
            return store.seen(kind, call.named["key"], call.caller)
        return store.own(kind, call.named["key"], call.caller)

    def list_tags(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """GET all tags. Raises 404."""
        return {"tags": found(store, call)["tags"]}

    def replace_tags(store: FakeNetworkStore, call: FakeCall) -> Mapping[str, object]:
        """PUT all tags. Raises 400, 403 or 404."""
        body = call.body()
        tags = body.get("tags") if isinstance(body, dict) else None
        names = sorted({tag for tag in tags if isinstance(tag, str)}) if isinstance(tags, list) else []
        if not isinstance(tags, list) or not all(isinstance(tag, str) and 0 < len(tag) <= 255 for tag in tags):
            raise NetworkError(400, "HTTPBadRequest", "Invalid input for tags: an array of strings is required")
        touch(found(store, call), {"tags": names})
        return {"tags": names}

    def add_tag(store: FakeNetworkStore, call: FakeCall) -> FakeAnswer:
        """PUT one tag; repeating it is not an error. Raises 403 or 404."""
        thing = found(store, call)
        touch(thing, {"tags": sorted({*thing["tags"], call.named["tag"]})})
        return FakeAnswer(201)

    def has_tag(store: FakeNetworkStore, call: FakeCall) -> FakeAnswer:
        """GET one tag. Raises 404."""
        _check_tag(found(store, call), call.named["tag"])
        return FakeAnswer(204)

    def remove_tag(store: FakeNetworkStore, call: FakeCall) -> None:
        """DELETE one tag. Raises 403 or 404."""
        thing, tag = found(store, call), call.named["tag"]
        _check_tag(thing, tag)
        touch(thing, {"tags": [one for one in thing["tags"] if one != tag]})

    def remove_tags(store: FakeNetworkStore, call: FakeCall) -> None:
        """DELETE all tags. Raises 403 or 404."""
        touch(found(store, call), {"tags": []})

    return (FakeRoute("GET", all_of, list_tags), FakeRoute("PUT", all_of, replace_tags),
            FakeRoute("DELETE", all_of, remove_tags, success=204), FakeRoute("GET", one, has_tag),
            FakeRoute("PUT", one, add_tag), FakeRoute("DELETE", one, remove_tag, success=204))


def _check_tag(thing: NeutronResource, tag: str) -> None:
    if tag not in thing["tags"]:
        raise NetworkError(404, "TagNotFound", f"Tag {tag} could not be found.")


