"""The recipe of docs/SCALE.md: files of sensors reach a centre through an object store, here moto's."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sidon

moto = pytest.importorskip("moto.server", reason="moto is not installed")
aws = shutil.which("aws", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(aws is None, reason="the aws client is not installed")

UNIT = Path(__file__).parents[2] / "packaging/sidon-upload.service"
SEED = 7


def settings(key):
    """The values of a key of the unit."""
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    return [line.split("=", 1)[1] for line in lines if line.startswith(f"{key}=")]


@pytest.fixture
def store():
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address, port = server.get_host_and_port()
    yield f"http://{address}:{port}"
    server.stop()


def client(store, *words, cwd=None, check=True):
    environment = {"PATH": os.environ["PATH"], "HOME": os.fspath(cwd), "AWS_ENDPOINT_URL": store}
    environment |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    environment["AWS_MAX_ATTEMPTS"] = "2"
    done = subprocess.run([aws, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert not check or done.returncode == 0, done.stderr
    return done


def upload(store, directory, sensor, check=True):
    """Runs the command of the unit as systemd runs it: words by quotes, with the variables of its settings."""
    program, *words = shlex.split(settings("ExecStart")[0])
    assert program == "/usr/bin/aws"
    own = {"SIDON_BUCKET": "flows", "SIDON_SENSOR": sensor}
    for name, value in own.items():
        words = [word.replace(f"${{{name}}}", value) for word in words]
    return client(store, *words, cwd=directory, check=check)


def save_dir(directory, capture):
    """The files of ``sidon watch --save-dir``, without the tool."""
    directory.mkdir()

    def save(start, part):
        part.save(directory / time.strftime("sidon-%Y%m%dT%H%M%SZ.sidon", time.gmtime(start // 10**9)))

    sidon.watch_by(capture, 1, save, seed=SEED, memory="2MiB")
    return sorted(directory.glob("sidon-*.sidon"))


def test_files_of_sensors_reach_the_centre_whole_and_once(store, tmp_path):
    client(store, "s3", "mb", "s3://flows", cwd=tmp_path)
    sensors = {}
    for number in range(2):
        capture = sidon.generate(20_000, seed=number, rate=8_000, clients=100)
        sensors[f"tap-{number}"] = save_dir(tmp_path / f"tap-{number}", capture)
    assert all(len(files) >= 2 for files in sensors.values())
    # Files that are being written, and the note of a server, stay.
    (tmp_path / "tap-0/.sidon-20231114T221320Z.sidon.new").write_bytes(b"half")
    (tmp_path / "tap-0/.serve").write_bytes(b"note")
    done = upload(store, tmp_path / "tap-0", "tap-0")
    assert done.stdout.count("upload: ") == len(sensors["tap-0"])

    # The store does not answer: the command fails, and the next one sends what is missing.
    assert upload("http://127.0.0.1:1", tmp_path / "tap-1", "tap-1", check=False).returncode != 0
    upload(store, tmp_path / "tap-1", "tap-1")
    for sensor in sensors:
        assert "upload: " not in upload(store, tmp_path / sensor, sensor).stdout

    centre = tmp_path / "centre"
    centre.mkdir()
    client(store, "s3", "sync", "--no-progress", "s3://flows", ".", cwd=centre)
    found = {path.relative_to(centre): path.read_bytes() for path in centre.rglob("*") if path.is_file()}
    sent = {Path(sensor, path.name): path.read_bytes() for sensor, files in sensors.items() for path in files}
    assert found == sent
    packets = sidon.merge(sorted(centre.rglob("*.sidon"))).packets
    assert packets == 40_000


def test_the_timer_follows_the_default_period():
    timer = UNIT.with_suffix(".timer").read_text(encoding="utf-8")
    assert "OnCalendar=*:1/5" in timer
    # Both units have one user, or the second could not read the directory of the first.
    server = UNIT.with_name("sidon.service").read_text(encoding="utf-8")
    assert settings("User") == ["sidon"] and settings("StateDirectory") == ["sidon"]
    assert "DynamicUser=yes" in server and "StateDirectory=sidon\n" in server
