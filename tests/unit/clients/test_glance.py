from __future__ import annotations

from types import SimpleNamespace

import pytest
from keystoneauth1 import session as ksession
from oslo_config import cfg

from nova import concurrency, context, errors
from nova import conf as nova_conf
from nova.clients import session
from nova.clients.glance import Glance
from nova.model.image.images import ImageQuery, NewImage
from tests.fakes.glance import FakeGlance


@pytest.fixture
def server():
    with FakeGlance() as fake:
        yield fake


@pytest.fixture
def glance(server):
    return client_of(server.url)


def client_of(*addresses, retries=3, read_timeout_s=2.0):
    service = session.ServiceEndpoint("image", "image", addresses, retries=retries, read_timeout_s=read_timeout_s,
                                      retry_wait_s=0.01)
    return Glance(session.Caller(service, session.Credentials(ksession.Session(), None)))


def test_show_of_an_image_gives_its_properties_as_text(server, glance):
    image_id = server.add(b"abc", hw_disk_bus="virtio", kernel_id="k1", disk_format="qcow2", min_disk=3)
    image = glance.show(image_id)
    assert dict(image.properties) == {"hw_disk_bus": "virtio", "kernel_id": "k1"}
    assert (image.kernel_id, image.size_bytes, image.min_disk_gb, image.disk_format) == ("k1", 3, 3, "qcow2")
    assert image.created_at is not None and image.created_at.tzinfo is None


def test_show_of_an_unknown_image_names_it(glance):
    with pytest.raises(errors.image.NotFound, match="Image nope could not be found"):
        glance.show("nope")


def test_show_while_the_service_hiccups_is_tried_again(server, glance):
    image_id = server.add()
    server.knobs.fail_next = 2
    assert glance.show(image_id).id == image_id
    assert len(server.requests) == 3


def test_show_while_the_service_is_down_names_the_service():
    with pytest.raises(errors.Unavailable, match="The image service does not answer"):
        client_of("http://127.0.0.1:9", retries=1).show("x")


def test_show_when_one_of_two_addresses_is_down_asks_the_other(server):
    image_id = server.add()
    both = client_of("http://127.0.0.1:9", server.url)
    assert [both.show(image_id).id for _ in range(3)] == [image_id] * 3


def test_show_when_the_service_stalls_gives_up_in_time(server):
    server.knobs.stall_s = 1.0
    with pytest.raises(errors.Unavailable, match="timeout"):
        client_of(server.url, retries=0, read_timeout_s=0.1).show(server.add())


def test_show_as_user_when_the_request_has_no_token_then_it_is_not_asked_with_ours(server, glance):
    image_id = server.add()
    ours = SimpleNamespace(get_headers=lambda session: {"X-Auth-Token": "ours"})
    caller = session.Caller(session.ServiceEndpoint("image", "image", (server.url,)),
                            session.Credentials(ksession.Session(), ours))
    with context.entered(context.RequestContext(request_id="req-1")), pytest.raises(errors.service.Forbidden):
        Glance(caller).show(image_id, as_user=True)
    assert server.requests == []


def test_show_as_user_when_many_users_ask_by_one_client_then_each_by_its_own_token_alone(server, glance):
    """No credential of a request serves another (OSSN-0063), nor a call for nobody, which has the word of noauth."""
    image_id = server.add()

    def ask(user: str) -> None:
        with context.entered(context.RequestContext(request_id="req-1", global_request_id=f"req-{user}",
                                                    token=f"token-{user}" if user != "nobody" else None)):
            glance.show(image_id, as_user=user != "nobody")
    asking = [concurrency.spawn(ask, user) for user in ("ann", "bob", "nobody", "ann", "eve") * 8]
    for one in asking:
        one.join(30)
    sent = {(headers["X-OpenStack-Request-ID"], headers.get("X-Auth-Token")) for _, _, headers in server.requests}
    assert len(server.requests) == 40 and sent == {
        ("req-nobody", "notused"), *((f"req-{user}", f"token-{user}") for user in ("ann", "bob", "eve"))}


def test_show_as_user_sends_the_users_token(server, glance):
    server.knobs.token = "t1"
    image_id = server.add()
    with context.entered(context.RequestContext(request_id="req-1", token="t1")):
        assert glance.show(image_id, as_user=True).id == image_id
        with pytest.raises(errors.Forbidden):
            glance.show(image_id)


def test_list_follows_links_up_to_the_limit(server, glance):
    ids = [server.add() for _ in range(60)]
    assert [image.id for image in glance.list(ImageQuery())] == ids
    assert [image.id for image in glance.list(ImageQuery(limit=30, marker=ids[9]))] == ids[10:40]


def test_delete_of_a_protected_image_is_forbidden(server, glance):
    image_id = server.add(protected=True)
    with pytest.raises(errors.Forbidden):
        glance.delete(image_id)
    assert image_id in server.images


@pytest.mark.parametrize(("items", "delete", "replace", "then"), [
    ({"a": "2", "b": "3"}, (), False, {"a": "2", "b": "3", "c": "1"}),
    ({}, ("a", "never"), False, {"c": "1"}),
    ({"z": "9"}, (), True, {"z": "9"}),
    ({"a": "1"}, (), False, {"a": "1", "c": "1"}),
])
def test_update_properties_changes_what_was_asked(server, glance, items, delete, replace, then):
    image_id = server.add(a="1", c="1")
    assert dict(glance.update_properties(image_id, items, delete, replace)) == then
    assert dict(glance.show(image_id).properties) == then


def conf_of(text, tmp_path):
    path = tmp_path / "nova.conf"
    path.write_text(text)
    conf = nova_conf.register(cfg.ConfigOpts())
    conf(["--config-file", str(path)], project="nova")
    return conf


def test_credentials_without_any_section_are_none(tmp_path):
    assert session.load(conf_of("", tmp_path), "glance").auth is None


def test_credentials_of_service_user_serve_glance(tmp_path):
    text = "[service_user]\nauth_type = password\nauth_url = http://127.0.0.1:9/v3\nusername = nova\npassword = p\n"
    loaded = session.load(conf_of(text, tmp_path), "glance")
    assert loaded.auth is not None and loaded.session.timeout == session.READ_TIMEOUT_S


def test_credentials_that_lack_a_part_name_the_section(tmp_path):
    with pytest.raises(errors.config.Credentials, match=r"\[glance\]"):
        session.load(conf_of("[glance]\nauth_type = password\n", tmp_path), "glance")


def new_image(**fields):
    return NewImage(**{"id": "7a0d8a6e-5d0b-4a4c-8a0e-0d7b5a3c1f11", "name": "a snapshot", **fields})


def test_create_of_an_image_makes_a_record_without_data(server, glance):
    made = glance.create(new_image(min_disk_gb=3, properties={"image_type": "snapshot"}))
    assert (made.status, made.min_disk_gb, made.visibility) == ("queued", 3, "private")
    assert dict(made.properties) == {"image_type": "snapshot"}
    assert server.images[made.id]["size"] is None


def test_show_when_an_id_has_slashes_then_it_stays_one_part_of_the_path(server, glance):
    with pytest.raises(errors.NotFound):
        glance.show("../../v2/images/x?y#z")
    assert [path for _method, path, _headers in server.requests] == ["/v2/images/..%2F..%2Fv2%2Fimages%2Fx%3Fy%23z"]


def test_create_as_user_sends_the_users_token(server, glance):
    server.knobs.token = "t1"
    with context.entered(context.RequestContext(request_id="req-1", token="t1")):
        assert glance.create(new_image(), as_user=True).owner == "t1"


def test_create_that_is_repeated_gives_the_image_that_is_there(server, glance):
    first = glance.create(new_image())
    assert glance.create(new_image()) == first
    assert len(server.images) == 1


def test_create_while_the_service_is_down_names_the_service(server, glance):
    server.knobs.fail_next = 10
    with pytest.raises(errors.Unavailable, match="The image service does not answer"):
        glance.create(new_image())


def test_update_sets_members_and_properties(server, glance):
    image_id = server.add(a="1")
    after = glance.update(image_id, {"disk_format": "qcow2", "min_disk": 4, "a": "2", "b": 3})
    assert (after.disk_format, after.min_disk_gb, dict(after.properties)) == ("qcow2", 4, {"a": "2", "b": "3"})
    assert glance.update(image_id, {}) == after


def test_list_by_properties_gives_those_that_have_them(server, glance):
    one = server.add(image_type="backup", instance_uuid="u1")
    server.add(image_type="backup", instance_uuid="u2")
    server.add()
    found = glance.list(ImageQuery(filters={"image_type": "backup", "instance_uuid": "u1"}))
    assert [image.id for image in found] == [one]


def test_create_when_the_name_has_letters_of_four_bytes_then_glance_takes_it_without_them(glance):
    made = glance.create(NewImage(id="11111111-1111-4111-8111-111111111111", name="emo\U0001f389ji \u4e2d-shelved"))
    assert made.name == "emo\N{REPLACEMENT CHARACTER}ji \u4e2d-shelved"


def test_refusal_when_it_is_a_page_then_its_reason_is_told(server):
    caller = session.Caller(session.ServiceEndpoint("image", "image", (server.url,)),
                            session.Credentials(ksession.Session(), None))
    with pytest.raises(errors.Invalid) as refused:
        caller.call("POST", "/v2/images", json={"name": "\U0001f389"})
    assert "400 Characters of more than 3 bytes are not supported & refused." in refused.value.message
    assert "<" not in refused.value.message
