"""What happens to a server on its host: paused, suspended, rescued, shelved, rebuilt, made an image of, deleted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tests.functional.client import IMAGE
from tests.functional.live import planted
from tests.functional.live.caller import ADMIN, MEMBER, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import USER_DATA, World

PLACES = ("servers", "os-volumes_boot")


def action(name: str, place: str = "servers") -> str:
    return f"POST /{place}/{{server_id}}/action#{name}"


def act(world: World, uuid: str, body: Any, *settled: str, user: str = ADMIN) -> None:
    """Bring a server into the state that a scenario begins in, or back."""
    world.ask("POST", f"/servers/{uuid}/action", body, user=user)
    world.settle(uuid, *settled)


def lively(world: World) -> str:
    """A plain server of the member's, whose states come and go."""
    return world.once("lively", lambda: world.settle(world.boot("lively", {"metadata": {"meta_var": "meta_val"}})))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Side:
    """One of two actions that undo each other: the status after it, and its samples."""

    name: str
    status: str = "ACTIVE"
    folder: str = ""
    request: str = ""
    answer: str = ""
    value: Any = None
    fill: Callable[[Any, int], Any] = lambda body, version: body
    user: str = MEMBER

    def exchange(self, path: Any, done: Callable[[Answer, int], None]) -> Exchange:
        body = None if self.request else (lambda version: {self.name: self.value})
        return Exchange(operation=action(self.name), path=path, folder=self.folder, request=self.request, body=body,
                        answer=self.answer, fill=self.fill, done=done, user=self.user)


def there_and_back(world: World, forth: Side, back: Side, *begin: tuple[Any, str]) -> None:
    """Each of the two at each of its turning points. ``begin``: (action, status) that lead to where ``forth`` begins,
    from a running server."""
    uuid = lively(world)
    path = f"/servers/{uuid}/action"

    def prepared(*steps: tuple[Any, str]) -> Callable[[int], str]:
        def run(version: int) -> str:
            for body, status in steps:
                act(world, uuid, body, status)
            return path
        return run

    def gone_forth(answer: Answer, version: int) -> None:
        world.settle(uuid, forth.status)
        act(world, uuid, {back.name: None})
    forth.exchange(prepared(*begin), gone_forth).run(world.live)
    back.exchange(prepared(*begin, ({forth.name: forth.value}, forth.status)),
                  lambda answer, version: put_back(world, uuid)).run(world.live)


def put_back(world: World, uuid: str) -> None:
    world.settle(uuid)


@scenario
def pause(world: World) -> None:
    there_and_back(world, Side(name="pause", status="PAUSED", folder="os-pause-server", request="pause-server"),
                   Side(name="unpause", folder="os-pause-server", request="unpause-server"))


@scenario
def suspend(world: World) -> None:
    there_and_back(world, Side(name="suspend", status="SUSPENDED", folder="os-suspend-server",
                               request="server-suspend"), Side(name="resume"))


@scenario
def rescue(world: World) -> None:
    live, uuid = world.live, lively(world)

    def from_here(body: Any, version: int) -> Any:
        if "rescue_image_ref" in (body["rescue"] or {}):
            body["rescue"]["rescue_image_ref"] = IMAGE
        return body
    back = Side(name="unrescue", folder="os-rescue", request="server-unrescue-req")
    for request in ("server-rescue-req", "server-rescue-req-with-image-ref"):
        there_and_back(world, Side(name="rescue", status="RESCUE", folder="os-rescue", request=request,
                                   answer="server-rescue", fill=from_here), back)
    act(world, uuid, {"rescue": None}, "RESCUE")
    live.shows("os-rescue", "server-get-resp-rescue", f"/servers/{uuid}")
    live.call("POST", f"/servers/{uuid}/action", {"rescue": None}, expect=409)
    live.call("POST", f"/servers/{uuid}/action", {"pause": None}, expect=409)
    act(world, uuid, {"unrescue": None})
    live.shows("os-rescue", "server-get-resp-unrescue", f"/servers/{uuid}")
    nothing = {"rescue": {"rescue_image_ref": "6c2b1d4e-0000-4c6e-9d0b-000000000000"}}
    live.call("POST", f"/servers/{uuid}/action", nothing, expect=400)


# -- shelving: this cloud keeps shelved servers on their hosts until it is told


SHELVE = ({"shelve": None}, "SHELVED")
OFFLOAD = ({"shelveOffload": None}, "SHELVED_OFFLOADED")


@scenario
def shelve(world: World) -> None:
    there_and_back(world, Side(name="shelve", status="SHELVED", folder="os-shelve", request="os-shelve"),
                   Side(name="unshelve", folder="os-shelve", request="os-unshelve"))


@scenario
def shelve_and_offload(world: World) -> None:
    there_and_back(world, Side(name="shelveOffload", status="SHELVED_OFFLOADED", user=ADMIN), Side(name="unshelve"),
                   SHELVE)


@scenario
def unshelve_to_a_place(world: World) -> None:
    uuid = lively(world)

    def begun(version: int) -> str:
        for body, status in (SHELVE, OFFLOAD):
            act(world, uuid, body, status)
        return f"/servers/{uuid}/action"

    def here(body: Any, version: int) -> Any:
        place = body["unshelve"]
        if place.get("availability_zone"):
            place["availability_zone"] = "nova"
        if "host" in place:
            place["host"] = "host1"
        return body
    for request, versions in (("os-unshelve-az", range(77, 105)), ("os-unshelve-host", range(91, 105)),
                              ("os-unshelve-az-host", range(91, 105)), ("os-unshelve-unpin-az", range(91, 105)),
                              ("os-unshelve-host-and-unpin-az", range(91, 105))):
        Exchange(operation=action("unshelve"), path=begun, folder="os-shelve", request=request, fill=here,
                 versions=versions, done=lambda answer, version: put_back(world, uuid)).run(world.live)


@scenario
def unshelve_refusals(world: World) -> None:
    live, uuid = world.live, lively(world)
    path = f"/servers/{uuid}/action"
    live.call("POST", path, {"unshelve": None}, expect=409)
    live.call("POST", path, {"shelveOffload": None}, expect=409)
    act(world, uuid, *SHELVE)
    live.call("POST", path, {"unshelve": {"availability_zone": "nova"}}, expect=409)
    act(world, uuid, *OFFLOAD)
    live.call("POST", path, {"unshelve": {"availability_zone": "nowhere"}}, expect=400)
    live.call("POST", path, {"unshelve": {"host": "nowhere"}}, expect=400)
    live.call("POST", path, {"unshelve": {"host": "host1"}}, 104, MEMBER, expect=403)
    live.call("POST", path, {"pause": None}, expect=409)
    act(world, uuid, {"unshelve": None})


# -- rebuild


def remade(world: World) -> str:
    """A server with all that a rebuild's answer shows."""
    return world.once("remade", lambda: world.settle(world.boot("remade", {
        "key_name": "standing", "metadata": {"meta_var": "meta_val"}, "description": "stands", "tags": ["tag1"],
        "user_data": USER_DATA, "availability_zone": "nova"}, hints={"group": world.soft_group})))


#: Fields of a rebuild's body and the versions that have them (certificates: of none is it said that they are
#: verified); a sample of an older one stands in where there is none.
FIELDS = {"description": range(19, 105), "key_name": range(54, 105), "personality": range(57),
          "user_data": range(57, 105), "trusted_image_certificates": range(0), "hostname": range(90, 105)}


@scenario
def rebuild(world: World) -> None:
    """The samples' users differ: the whole answer from 2.75 on is an admin's up to 2.89, then a member's."""
    live, uuid = world.live, remade(world)

    def known(body: Any, version: int) -> Any:
        asked = body["rebuild"] | {"imageRef": IMAGE}
        if asked.get("key_name"):
            asked["key_name"] = "standing"
        return {"rebuild": {name: value for name, value in asked.items() if version in FIELDS.get(name, range(105))}}

    def done(answer: Answer, version: int) -> None:
        if not answer.headers.get("Location", "").endswith(uuid):
            live.problem(f"rebuild at 2.{version}", f"header Location: got {answer.headers.get('Location')}")
        put_back(world, uuid)
    for user, versions in ((ADMIN, range(90)), (MEMBER, range(90, 105))):
        Exchange(operation=action("rebuild"), path=f"/servers/{uuid}/action", folder="servers", user=user,
                 request="server-action-rebuild", answer="server-action-rebuild-resp", fill=known, done=done,
                 versions=versions).run(live)
    kept = "server-action-rebuild-preserve-ephemeral"
    Exchange(operation=action("rebuild"), path=f"/servers/{uuid}/action", folder="os-preserve-ephemeral-rebuild",
             request=kept, answer=f"{kept}-resp", fill=known, done=done, versions=range(1, 2)).run(live)
    each(live, action("rebuild", "os-volumes_boot"), f"/os-volumes_boot/{uuid}/action",
         lambda version: {"rebuild": {"imageRef": IMAGE}}, done)


@scenario
def rebuild_refusals(world: World) -> None:
    live, path = world.live, f"/servers/{remade(world)}/action"
    nothing = "6c2b1d4e-0000-4c6e-9d0b-000000000000"
    for wrong in ({"imageRef": nothing}, {"key_name": "nothing"}, {"name": ""}, {"hostname": "bad!"}, {"stranger": 1},
                  {"user_data": "not base64!"}, {"trusted_image_certificates": []},
                  {"trusted_image_certificates": ["a"]}):
        live.call("POST", path, {"rebuild": {"imageRef": IMAGE} | wrong}, expect=400)
    many = {"metadata": {f"k{number}": "v" for number in range(129)}}
    live.call("POST", path, {"rebuild": {"imageRef": IMAGE} | many}, expect=403)


# -- images


def image_of(answer: Answer) -> str:
    return str(answer.body["image_id"] if answer.body else answer.headers.get("Location", "").rsplit("/", 1)[-1])


def drop_image(world: World, uuid: str, operation: str) -> Callable[[Answer, int], None]:
    """The server goes on, the image it was made into is there; it goes again."""
    def done(answer: Answer, version: int) -> None:
        put_back(world, uuid)
        image = image_of(answer)
        made = world.cloud.glance.images.get(image, {})
        if made.get("status") != "active" or ("Location" in answer.headers) != (version < 45):
            world.live.problem(f"{operation} at 2.{version}", f"image {image} is {made.get('status')}, "
                                                              f"Location: {answer.headers.get('Location')}")
        world.cloud.glance.images.pop(image, None)
    return done


@scenario
def create_image(world: World) -> None:
    live, uuid = world.live, lively(world)
    for place in PLACES:
        operation = action("createImage", place)
        Exchange(operation=operation, path=f"/{place}/{uuid}/action", folder="servers", user=MEMBER,
                 request="server-action-create-image", done=drop_image(world, uuid, operation)).run(live)
    many = {"name": "x", "metadata": {f"k{number}": "v" for number in range(129)}}
    live.call("POST", f"/servers/{uuid}/action", {"createImage": many}, 38, MEMBER, expect=403)


@scenario
def create_backup(world: World) -> None:
    live, uuid = world.live, lively(world)
    path, operation = f"/servers/{uuid}/action", action("createBackup")
    Exchange(operation=operation, path=path, folder="os-create-backup", answer="create-backup-resp", user=MEMBER,
             body=lambda version: {"createBackup": {"name": "Backup 1", "backup_type": "daily", "rotation": 1}},
             done=drop_image(world, uuid, operation)).run(live)
    many = {"name": "x", "backup_type": "daily", "rotation": 1,
            "metadata": {f"k{number}": "v" for number in range(129)}}
    live.call("POST", path, {"createBackup": many}, 38, MEMBER, expect=403)


@scenario
def image_refusals(world: World) -> None:
    """While a server is paused there are images of it, while it is rescued none."""
    live, uuid = world.live, lively(world)
    path = f"/servers/{uuid}/action"
    act(world, uuid, {"rescue": None}, "RESCUE")
    live.call("POST", path, {"createImage": {"name": "x"}}, expect=409)
    live.call("POST", path, {"createBackup": {"name": "x", "backup_type": "daily", "rotation": 1}}, expect=409)
    act(world, uuid, {"unrescue": None})


# -- the guest's inside


@scenario
def change_password(world: World) -> None:
    uuid = lively(world)
    Exchange(operation=action("changePassword"), path=f"/servers/{uuid}/action", folder="os-admin-password",
             request="admin-password-change-password", user=MEMBER,
             done=lambda answer, version: put_back(world, uuid)).run(world.live)


@scenario
def crash_dump(world: World) -> None:
    uuid = lively(world)
    for place in PLACES:
        Exchange(operation=action("trigger_crash_dump", place), path=f"/{place}/{uuid}/action", folder="servers",
                 request="server-action-trigger-crash-dump", user=MEMBER,
                 done=lambda answer, version: put_back(world, uuid)).run(world.live)


@scenario
def network_info(world: World) -> None:
    Exchange(operation=action("injectNetworkInfo"), path=f"/servers/{lively(world)}/action", folder="os-admin-actions",
             request="admin-actions-inject-network-info").run(world.live)


# -- the end, and back from it


@scenario
def force_delete(world: World) -> None:
    doomed: list[str] = []

    def another(version: int) -> str:
        doomed.append(world.settle(world.boot("doomed")))
        return f"/servers/{doomed[-1]}/action"
    each(world.live, action("forceDelete"), another, lambda version: {"forceDelete": None},
         lambda answer, version: world.gone(doomed[-1]), user=MEMBER)


@scenario
def restore(world: World) -> None:
    """Of servers that are deleted softly, which this cloud does not do by itself."""
    live, uuid = world.live, world.settle(world.boot("restored"))

    def deleted(version: int) -> str:
        planted.soft_deleted(world, uuid)
        return f"/servers/{uuid}/action"
    Exchange(operation=action("restore"), path=deleted, folder="os-deferred-delete", request="restore-post-req",
             user=MEMBER, done=lambda answer, version: put_back(world, uuid)).run(live)
    live.call("POST", f"/servers/{uuid}/action", {"restore": None}, expect=409)
    world.remove(uuid)


@scenario
def locked_servers_keep_as_they_are(world: World) -> None:
    """What the lock keeps from the owner, at both places; the rest does not look at it."""
    live, uuid = world.live, world.locked
    grown = {"resize": {"flavorRef": "2"}}
    for body in ({"pause": None}, {"unpause": None}, {"suspend": None}, {"resume": None}, {"rescue": None},
                 {"unrescue": None}, {"shelve": None}, {"unshelve": None}, {"restore": None}, {"forceDelete": None},
                 {"changePassword": {"adminPass": "x"}}):
        live.call("POST", f"/servers/{uuid}/action", body, 104, MEMBER, expect=409)
    for place in PLACES:
        for body in ({"rebuild": {"imageRef": IMAGE}}, grown, {"confirmResize": None}, {"revertResize": None},
                     {"trigger_crash_dump": None}):
            live.call("POST", f"/{place}/{uuid}/action", body, 102, MEMBER, expect=409)


@scenario
def actions_in_the_wrong_state(world: World) -> None:
    live, uuid = world.live, lively(world)
    for body in ({"unpause": None}, {"resume": None}, {"unrescue": None}, {"restore": None}, {"confirmResize": None},
                 {"revertResize": None}, {"unshelve": None}):
        live.call("POST", f"/servers/{uuid}/action", body, expect=409)
    act(world, uuid, {"pause": None}, "PAUSED")
    for body in ({"pause": None}, {"suspend": None}, {"rescue": None}, {"rebuild": {"imageRef": IMAGE}},
                 {"changePassword": {"adminPass": "x"}}, {"migrate": None}, {"resize": {"flavorRef": "private"}},
                 {"evacuate": {}}):
        live.call("POST", f"/servers/{uuid}/action", body, expect=409)
    act(world, uuid, {"unpause": None})
    reported = world.ask("GET", f"/servers/{uuid}/os-instance-actions")["instanceActions"]
    if reported[0]["action"] != "unpause" or reported[0]["message"] is not None:
        live.problem(f"/servers/{uuid}/os-instance-actions", f"expected unpause at its head, got {reported[0]}")
