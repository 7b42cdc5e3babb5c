"""EC2, S3 and certificates as one user's way: from a disk on a laptop to a guest that runs, by ``aws`` alone.

Real Keystone checks the signatures, real Glance has the image, real Cinder the volume, and a real guest says who it is.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from tests.fakes import bundles
from tests.functional.backends import wait_until
from tests.machine.conftest import made_sandbox
from tests.machine.live import Live
from tests.machine.stack import Sandbox

pytestmark = pytest.mark.in_turn(9, 10)

OPTIONS = ("--hosts", "1", "--ec2", "--volumes", "nfs")
AWS = str(Path(sys.executable).with_name("aws"))
POOL = "10.200.77.0/29"  # of the sandbox's own network


@pytest.fixture(scope="module")
def cloud(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with made_sandbox(request, *OPTIONS) as made:
        yield made


@dataclass(frozen=True)
class Account:
    """A user with an access key."""

    cloud: Sandbox
    access: str
    secret: str

    def aws(self, *words: str, port: str = "ec2", path: str = "/services/Cloud", code: int | None = 0) -> str:
        given = {"AWS_ACCESS_KEY_ID": self.access, "AWS_SECRET_ACCESS_KEY": self.secret,
                 "AWS_DEFAULT_REGION": "RegionOne", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
        return self.cloud.run("env", *(f"{name}={value}" for name, value in given.items()), AWS, "--endpoint-url",
                              self.cloud.layout.url(port, path), "--output", "json", *words, code=code)

    def ec2(self, *words: str) -> Any:
        said = self.aws("ec2", *words)
        return json.loads(said) if said.strip() else None

    def s3(self, *words: str) -> str:
        return self.aws("s3", *words, port="s3", path="")


@pytest.fixture(scope="module")
def account(cloud: Sandbox) -> Account:
    made = cloud.openstack("ec2", "credentials", "create")
    return Account(cloud, made["access"], made["secret"])


@pytest.fixture(scope="module")
def bundle(cloud: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> bundles.Bundle:
    """Of the guests' own disk, for the user's certificate and the cloud's, as their API gives them out."""
    folder = tmp_path_factory.mktemp("disk")
    raw = folder / "tiny.raw"
    subprocess.run(["qemu-img", "convert", "-O", "raw", str(cloud.layout.images / "tiny.qcow2"), str(raw)], check=True,
                   capture_output=True)
    api = Live(cloud.layout.url("compute", "/v2"), cloud.token("demo"), cloud.dial, "2.1")
    own = api.call("POST", "/os-certificates").json()["certificate"]
    root = api.get("/os-certificates/root")["certificate"]["data"]
    assert own["private_key"].startswith("-----BEGIN RSA PRIVATE KEY")
    user, ours = (x509.load_pem_x509_certificate(text[text.index("-----BEGIN"):].encode()).public_key()
                  for text in (own["data"], root))
    return bundles.bundle(raw.read_bytes(), bundles.Keys(user, ours), name="tiny", part_bytes=10 * 2**20)


def test_image_when_it_is_bundled_uploaded_and_registered_then_a_guest_of_it_runs_with_all_that_ec2_has(
        cloud: Sandbox, account: Account, bundle: bundles.Bundle, tmp_path: Path) -> None:
    cloud.api("admin")  # makes the flavor
    for name, data in {bundle.manifest_name: bundle.manifest, **bundle.parts}.items():
        (tmp_path / name).write_bytes(data)
    account.s3("mb", "s3://disks")
    account.s3("sync", str(tmp_path), "s3://disks/")
    image = account.ec2("register-image", "--image-location", f"disks/{bundle.manifest_name}", "--name",
                        "bundled")["ImageId"]
    account.ec2("wait", "image-available", "--image-ids", image)

    public = subprocess.run(["ssh-keygen", "-y", "-f", str(cloud.key)], check=True, capture_output=True).stdout
    (tmp_path / "key.pub").write_bytes(public)
    account.ec2("import-key-pair", "--key-name", "laptop", "--public-key-material", f"fileb://{tmp_path}/key.pub")
    made = account.ec2("run-instances", "--image-id", image, "--instance-type", "t1.nano", "--key-name", "laptop",
                       "--user-data", "of this test", "--tag-specifications",
                       "ResourceType=instance,Tags=[{Key=Name,Value=by-ec2}]")["Instances"][0]
    instance = made["InstanceId"]
    account.ec2("wait", "instance-running", "--instance-ids", instance)
    wait_until("the guest is up", lambda: "nova-guest ready" in console(account, instance), 120, 1)
    shown = described(account, instance)
    address = shown["PrivateIpAddress"]

    def metadata(name: str) -> str:
        return cloud.ssh(address, f"wget -q -O - http://169.254.169.254/latest/{name}").strip()
    assert metadata("meta-data/instance-id") == instance
    assert metadata("meta-data/ami-id") == image == shown["ImageId"]
    assert metadata("meta-data/reservation-id") == made_reservation(account, instance)
    assert metadata("user-data") == "of this test"

    check_address(cloud, account, instance)
    check_volume(cloud, account, instance, address)
    account.ec2("terminate-instances", "--instance-ids", instance)
    account.ec2("wait", "instance-terminated", "--instance-ids", instance)
    account.ec2("deregister-image", "--image-id", image)
    account.s3("rb", "s3://disks", "--force")
    account.ec2("delete-key-pair", "--key-name", "laptop")


def described(account: Account, instance: str) -> dict[str, Any]:
    found: dict[str, Any] = account.ec2("describe-instances", "--instance-ids", instance)
    [reservation] = found["Reservations"]
    [one] = reservation["Instances"]
    return {"ReservationId": reservation["ReservationId"], **one}


def made_reservation(account: Account, instance: str) -> str:
    return str(described(account, instance)["ReservationId"])


def console(account: Account, instance: str) -> str:
    said = json.loads(account.aws("ec2", "get-console-output", "--instance-id", instance))
    return said.get("Output", "")


def check_address(cloud: Sandbox, account: Account, instance: str) -> None:
    admin = cloud.login("admin", "2.1")
    answer = admin.call("POST", "/os-floating-ips-bulk", {"floating_ips_bulk_create": {"ip_range": POOL}})
    assert answer.status_code == 200, answer.text
    given = account.ec2("allocate-address")
    account.ec2("associate-address", "--instance-id", instance, "--allocation-id", given["AllocationId"])
    assert described(account, instance)["PublicIpAddress"] == given["PublicIp"]
    wait_until("it answers by its elastic IP", lambda: "up" in cloud.ssh(given["PublicIp"], "uptime", code=None), 30, 1)
    account.ec2("disassociate-address", "--association-id", given["AllocationId"].replace("alloc", "assoc"))
    account.ec2("release-address", "--allocation-id", given["AllocationId"])


def check_volume(cloud: Sandbox, account: Account, instance: str, address: str) -> None:
    volume = account.ec2("create-volume", "--size", "1", "--availability-zone", "nova")["VolumeId"]
    account.ec2("wait", "volume-available", "--volume-ids", volume)
    account.ec2("attach-volume", "--volume-id", volume, "--instance-id", instance, "--device", "/dev/vdb")
    account.ec2("wait", "volume-in-use", "--volume-ids", volume)
    wait_until("the guest sees it", lambda: "vdb" in cloud.ssh(address, "ls /sys/block"), 30, 1)
    cloud.ssh(address, "echo kept by ec2 > /dev/vdb; sync; head -c 11 /dev/vdb")
    account.ec2("detach-volume", "--volume-id", volume)
    account.ec2("wait", "volume-available", "--volume-ids", volume)
    account.ec2("delete-volume", "--volume-id", volume)
    account.ec2("wait", "volume-deleted", "--volume-ids", volume)


def test_request_when_its_secret_is_wrong_then_keystone_says_no_and_the_client_is_told(account: Account) -> None:
    wrong = Account(account.cloud, account.access, base64.b64encode(b"wrong").decode())
    assert account.ec2("describe-regions")["Regions"][0]["Endpoint"].startswith("http://10.200.")
    for words, port, path in ((("ec2", "describe-instances"), "ec2", "/services/Cloud"), (("s3", "ls"), "s3", "")):
        assert wrong.aws(*words, port=port, path=path, code=None) == ""
        with pytest.raises(AssertionError, match=r"AuthFailure|SignatureDoesNotMatch"):
            wrong.aws(*words, port=port, path=path)


def test_stack_when_it_is_looked_at_then_its_daemons_are_ready(cloud: Sandbox) -> None:
    for name in ("nova-api-ec2", "nova-objectstore", "nova-cert"):
        assert cloud.daemon(name)["phase"] == "ready"
    binaries = {one["Binary"] for one in cloud.openstack("compute", "service", "list", user="admin")}
    assert {"nova-cert", "nova-conductor"} <= binaries
