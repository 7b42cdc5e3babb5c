"""nova-cert's authorities: files as openssl has them, made once, safe to be killed at."""

from __future__ import annotations

import base64
import datetime
import subprocess
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding

from nova import errors
from nova.legacy.cert.authority import Authority, name_of

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

SUBJECT = "/O=NOVA ROOT/L=Mountain View/ST=California/C=US"


def load(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


def test_ensure_when_there_is_none_then_the_folder_is_as_openssl_has_it(tmp_path, clock):
    Authority(tmp_path / "CA", SUBJECT, clock=clock).ensure()
    here = tmp_path / "CA"
    assert (here / "serial").read_text() == "10\n" and (here / "index.txt").read_text() == ""
    assert (here / "private/cakey.pem").stat().st_mode & 0o777 == 0o600
    assert (here / "private").stat().st_mode & 0o777 == 0o700
    root = load((here / "cacert.pem").read_text())
    assert root.subject == root.issuer == name_of(SUBJECT)
    assert (root.not_valid_after_utc - root.not_valid_before_utc).days == 365


@pytest.mark.parametrize("lost", ["cacert.pem", "serial", "index.txt", "crl.pem"])
def test_ensure_when_it_died_in_between_then_the_next_goes_on_with_the_same_key(tmp_path, clock, lost):
    authority = Authority(tmp_path / "CA", SUBJECT, clock=clock)
    authority.ensure()
    key = (tmp_path / "CA/private/cakey.pem").read_bytes()
    (tmp_path / "CA" / lost).unlink()
    authority.ensure()
    assert (tmp_path / "CA" / lost).exists() and (tmp_path / "CA/private/cakey.pem").read_bytes() == key


def test_vpn_credentials_when_asked_twice_then_they_are_the_same_and_signed_by_the_projects_own(tmp_path, service):
    certs = service()
    certs.start()
    first, second = certs.vpn_credentials("demo"), certs.vpn_credentials("demo")
    assert first == second
    authority, server = load(first.authority), load(first.server_certificate)
    authority.public_key().verify(server.signature, server.tbs_certificate_bytes, padding.PKCS1v15(),
                                  server.signature_hash_algorithm)
    assert authority.subject != load(certs.fetch_ca("demo")).subject
    assert (tmp_path / "CA/projects/demo/index.txt").read_text().split("\t")[3] == "10"
    assert (tmp_path / "CA/projects/demo/server.key").stat().st_mode & 0o777 == 0o600
    assert first.public_key.startswith("ssh-rsa ")
    assert (tmp_path / "keys/demo-vpn.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


def test_vpn_credentials_when_asked_by_many_at_once_then_one_pair_is_made(tmp_path, service):
    certs, found = service(), []
    threads = [threading.Thread(target=lambda: found.append(certs.vpn_credentials("demo"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({one.server_certificate for one in found}) == 1


def test_fetch_ca_when_projects_have_their_own_then_it_is_the_projects(service):
    certs = service(use_project_ca=True)
    assert certs.fetch_ca("demo") == certs.vpn_credentials("demo").authority != certs.fetch_ca("other")


def test_fetch_crl_when_the_list_is_to_end_soon_then_it_is_renewed(clock, service):
    certs = service()
    certs.start()
    first = certs.fetch_crl("demo")
    assert certs.fetch_crl("demo") == first
    clock.now += datetime.timedelta(days=350)
    renewed = x509.load_pem_x509_crl(certs.fetch_crl("demo").encode())
    assert renewed.next_update_utc == clock.now + datetime.timedelta(days=365)


def test_certificates_when_they_are_to_end_soon_then_they_are_renewed_with_the_same_keys(tmp_path, clock, service):
    certs = service()
    certs.start()
    root, first = certs.fetch_ca("demo"), certs.vpn_credentials("demo")
    clock.now += datetime.timedelta(days=334)
    assert (certs.fetch_ca("demo"), certs.vpn_credentials("demo")) == (root, first)
    clock.now += datetime.timedelta(days=2)
    later = certs.vpn_credentials("demo")
    assert later.server_key == first.server_key
    for old, new in ((root, certs.fetch_ca("demo")), (first.authority, later.authority),
                     (first.server_certificate, later.server_certificate)):
        assert load(new).not_valid_after_utc == clock.now + datetime.timedelta(days=365)
        assert load(new).public_key() == load(old).public_key() and load(new).subject == load(old).subject
    old, server = load(first.authority), load(later.server_certificate)
    old.public_key().verify(server.signature, server.tbs_certificate_bytes, padding.PKCS1v15(),
                            server.signature_hash_algorithm)
    assert (tmp_path / "CA/projects/demo/index.txt").read_text().count("\n") == 2


def test_renew_when_something_is_to_end_soon_then_all_files_are_made_again_and_a_broken_one_keeps_no_other(
        tmp_path, clock, service, caplog):
    certs = service()
    certs.start()
    certs.renew()  # no project has any
    for project in ("a", "b", "c"):
        certs.vpn_credentials(project)
    (tmp_path / "CA/projects/b/cacert.pem").write_text("no certificate")
    files = [tmp_path / "CA" / where / name for where in ("", "projects/a", "projects/c")
             for name in ("cacert.pem", "crl.pem")]
    before = [one.read_bytes() for one in files]
    certs.renew()
    assert [one.read_bytes() for one in files] == before
    clock.now += datetime.timedelta(days=350)
    certs.renew()
    assert all(one.read_bytes() != old for one, old in zip(files, before, strict=True))
    assert "projects/b could not be renewed" in caplog.text


@pytest.mark.parametrize("project", ["", "..", "a/b", "a b", "x" * 256])
def test_vpn_credentials_when_the_project_names_a_path_then_invalid_and_nothing_is_made(tmp_path, service, project):
    with pytest.raises(errors.Invalid):
        service().vpn_credentials(project)
    assert not (tmp_path / "CA").exists()


def test_name_when_a_word_is_unknown_then_the_error_lists_the_known():
    with pytest.raises(ValueError, match="'XX'"):
        name_of("/XX=1")


def encrypted(certificate: str, text: bytes) -> str:
    return base64.b64encode(load(certificate).public_key().encrypt(text, padding.PKCS1v15())).decode()


def test_decrypt_when_openssl_encrypted_with_the_root_then_it_is_what_was_said(tmp_path, service):
    certs = service()
    certs.start()
    (tmp_path / "root.pem").write_text(certs.fetch_ca("demo"))
    data = subprocess.run(["openssl", "pkeyutl", "-encrypt", "-certin", "-inkey", tmp_path / "root.pem"],
                          input=b"00ff", capture_output=True, check=True).stdout
    assert certs.decrypt_text("demo", base64.b64encode(data).decode()) == "00ff"


def test_decrypt_when_projects_have_their_own_then_only_the_projects_key_does(service):
    certs = service(use_project_ca=True)
    secret = encrypted(certs.fetch_ca("demo"), b"key")
    certs.fetch_ca("other")
    assert certs.decrypt_text("demo", secret) == "key"
    try:
        assert certs.decrypt_text("other", secret) != "key"  # random text, once in a while
    except errors.Invalid as error:
        assert error.code == "cert.decryption"


def test_decrypt_when_the_project_has_no_authority_then_not_found_and_none_is_made(tmp_path, service):
    certs = service(use_project_ca=True)
    with pytest.raises(errors.cert.NoProject):
        certs.decrypt_text("demo", "aa==")
    assert not (tmp_path / "CA/projects/demo").exists()


@pytest.mark.parametrize("data", [b"", b"short", b"\xff" * 256, b"x" * 257])
def test_decrypt_when_anything_is_wrong_then_the_same_error_without_a_reason(service, data):
    certs = service()
    certs.start()
    for text in (base64.b64encode(data).decode(), "no base64!", encrypted(certs.fetch_ca("demo"), b"\xff\xfe")):
        with pytest.raises(errors.cert.Decryption) as caught:
            certs.decrypt_text("demo", text)
        assert (caught.value.message, caught.value.data) == ("Unable to decrypt the text.", {})
        assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_decrypt_when_the_padding_is_wrong_then_it_is_as_any_text_that_is_none(service):
    """What comes is random, and the same each time, or the error that all else gives."""
    certs = service()
    certs.start()

    def outcome(number):
        text = base64.b64encode(number.to_bytes(256)).decode()
        try:
            return certs.decrypt_text("demo", text)
        except errors.cert.Decryption as error:
            return error.message
    found = [outcome(number) for number in range(1, 9)]
    assert found == [outcome(number) for number in range(1, 9)]
    assert found.count("Unable to decrypt the text.") > 0
