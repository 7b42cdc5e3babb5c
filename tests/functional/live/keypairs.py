"""Keypairs: made by us until 2.91, imported, of other users from 2.10."""

from __future__ import annotations

import itertools
from typing import Any

from tests.functional.live.caller import ADMIN, LEGACY, MEMBER, Answer
from tests.functional.live.scenario import Exchange, each, scenario
from tests.functional.live.world import KEY, World

NUMBERS = itertools.count(1)


@scenario
def keypair_life(world: World) -> None:
    live = world.live

    def named(body: Any, version: int) -> Any:
        pair = body["keypair"] | {"name": f"key {version}-{next(NUMBERS)}"}
        if version < 10:
            pair.pop("user_id", None)
        if version < 2:
            pair.pop("type", None)
        if version >= 92:
            pair["public_key"] = pair.get("public_key", KEY)
        return {"keypair": pair}

    def made(answer: Answer, version: int) -> None:
        pair = answer.body["keypair"]
        query = f"?user_id={pair['user_id']}" if version >= 10 else ""
        user = ADMIN if pair["user_id"] == ADMIN or version >= 10 else MEMBER
        live.call("POST", "/os-keypairs", {"keypair": {"name": pair["name"], "public_key": KEY}}, version,
                  pair["user_id"], expect=409)
        live.call("GET", f"/os-keypairs/{pair['name']}{query}", None, version, user)
        live.call("DELETE", f"/os-keypairs/{pair['name']}{query}", None, version, user)
        live.call("DELETE", f"/os-keypairs/{pair['name']}{query}", None, version, user, expect=404)

    for word in ("post", "import-post"):
        Exchange(operation="POST /os-keypairs", path="/os-keypairs", folder="os-keypairs",
                 request=f"keypairs-{word}-req", answer=f"keypairs-{word}-resp", fill=named, done=made).run(live)
    def doomed(version: int) -> str:
        world.ask("POST", "/os-keypairs", {"keypair": {"name": "doomed", "public_key": KEY}})
        return "/os-keypairs/doomed"
    each(live, "DELETE /os-keypairs/{keypair_name}", doomed)
    for version in (1, 2, 104, LEGACY):
        live.call("POST", "/os-keypairs", {"keypair": {"name": "bad", "public_key": "no key"}}, version, expect=400)
    live.call("POST", "/os-keypairs", {"keypair": {"name": "bad"}}, 92, expect=400)


@scenario
def keypair_reads(world: World) -> None:
    live = world.live
    live.shows("os-keypairs", "keypairs-get-resp", "/os-keypairs/standing")
    live.shows("os-keypairs", "keypairs-list-resp", lambda version: "/os-keypairs" + ("?limit=1" if version >= 35
                                                                                     else ""))
    live.call("GET", "/os-keypairs?user_id=admin", None, 10, MEMBER, expect=403)
    live.call("GET", "/os-keypairs?marker=nothing", None, 35, expect=400)
