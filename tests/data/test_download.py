"""The download command, against a server on this machine that misbehaves in the ways mirrors do."""

import hashlib
import http.server
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from needle.data import download as module
from needle.data.download import DATASETS, RemoteFile, download, main
from needle.errors import DataError, DataNotFoundError

ROOT = Path(__file__).parents[2]
CONTENT = np.random.RandomState(0).bytes(600_000)  # more than two chunks
HTML = b"<!DOCTYPE html>\n<html><body>Quota exceeded</body></html>" + b" " * 200


class Mirror(http.server.BaseHTTPRequestHandler):
    """Serves CONTENT; the first part of a path names what goes wrong."""

    def do_GET(self):
        behaviour = self.path.split("/")[1]
        self.server.requests.append((behaviour, self.headers.get("Range")))
        getattr(self, behaviour)()

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def start(self):
        """Return where the client wants the file from."""
        header = self.headers.get("Range")
        return int(header.removeprefix("bytes=").removesuffix("-")) if header else 0

    def good(self, content=CONTENT, length=None):
        start = self.start()
        if start == 0:
            self.answer(200, content, length)
        elif start >= len(CONTENT):
            self.answer(416, b"", Content_Range=f"bytes */{len(CONTENT)}")
        else:
            span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
            self.answer(206, content[start:], length, Content_Range=span)

    def without_range(self):
        self.answer(200, CONTENT)

    def without_length(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(CONTENT)

    def redirected(self):
        self.answer(302, b"", Location="/good/file")

    def forbidden(self):
        self.answer(403, b"no", Content_Type="text/html")

    def html(self):
        self.answer(200, HTML, Content_Type="text/html; charset=utf-8")

    def html_as_gzip(self):
        self.answer(200, HTML, Content_Type="application/gzip")

    def cut(self):
        self.good(CONTENT[:400_000], len(CONTENT) - self.start())

    def wrong(self):
        self.good(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))

    def wrong_range(self):
        self.answer(206, CONTENT[:10], Content_Range=f"bytes 5-14/{len(CONTENT)}")

    def silent(self):
        self.close_connection = True

    def stalled(self):
        self.good(CONTENT[:1000], len(CONTENT) - self.start())
        self.wfile.flush()
        time.sleep(0.6)  # longer than the patience of these tests


@pytest.fixture(scope="module")
def server():
    """A server that remembers what it was asked."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        server.requests = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def direct(monkeypatch, server):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(module, "TIMEOUT", 0.3)
    server.requests.clear()


@pytest.fixture
def offer(server, monkeypatch):
    """Return a function that makes a data set "toy" of one file from mirrors that behave so."""

    def offer(*behaviours, content=CONTENT, **fields):
        host = f"http://127.0.0.1:{server.server_address[1]}"
        mirrors = tuple(f"{host}/{behaviour}/file" for behaviour in behaviours)
        file = RemoteFile("sub/file.gz", hashlib.sha256(content).hexdigest(), mirrors, **fields)
        monkeypatch.setitem(DATASETS, "toy", (file,))

    return offer


def asked(server):
    return [behaviour for behaviour, _ in server.requests]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("behaviour", ["good", "without_range", "without_length", "redirected"])
def test_a_good_mirror(offer, tmp_path, behaviour):
    offer(behaviour, "forbidden")
    lines = []
    download("toy", tmp_path, lines.append)
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT
    assert names_in(tmp_path / "sub") == ["file.gz"]
    assert lines == [f"{tmp_path}/sub/file.gz fetched and verified, 0.6 MB"]


def test_a_file_that_is_there_causes_no_request(offer, server, tmp_path):
    offer("good")
    download("toy", str(tmp_path))
    server.requests.clear()
    lines = []
    download("toy", tmp_path, lines.append)
    assert server.requests == [] and lines == [f"{tmp_path}/sub/file.gz is here already"]


def test_a_wrong_file_that_is_there_is_replaced(offer, tmp_path):
    offer("good")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file.gz").write_bytes(CONTENT[:-10])
    download("toy", tmp_path)
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT


BAD = {
    "forbidden": "HTTP 403 Forbidden",
    "html": "an HTML page, not the file",
    "html_as_gzip": "an HTML page, not the file",
    "cut": "broke off after 400000 of 600000 bytes",
    "wrong": "other bytes, SHA-256 [0-9a-f]{64}",
    "wrong_range": r"other bytes than asked for \(bytes 5-14/600000\)",
    "silent": "broke off",
    "stalled": r"broke off \(timed out\)",
}


@pytest.mark.parametrize("behaviour", BAD)
def test_a_bad_mirror_is_followed_by_the_next(offer, server, tmp_path, behaviour):
    offer(behaviour, "good")
    download("toy", tmp_path)
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT
    assert names_in(tmp_path / "sub") == ["file.gz"]
    assert asked(server)[0] == behaviour and asked(server)[-1] == "good"


@pytest.mark.parametrize("behaviour", BAD)
def test_bad_mirrors_alone_leave_no_file_that_looks_right(offer, tmp_path, behaviour):
    offer(behaviour, behaviour)
    with pytest.raises(DataNotFoundError, match=BAD[behaviour]) as caught:
        download("toy", tmp_path)
    message = str(caught.value)
    assert message.count("http://127.0.0.1") == 2 and "\n" not in message
    assert str(tmp_path / "sub" / "file.gz") in message
    assert names_in(tmp_path / "sub") in ([], ["file.gz.part"])


def test_every_mirror_is_named_with_its_reason(offer, tmp_path):
    offer("forbidden", "html", "wrong")
    with pytest.raises(DataNotFoundError) as caught:
        download("toy", tmp_path)
    reasons = str(caught.value).split("(", 1)[1].split("; ")
    assert "/forbidden/file: HTTP 403" in reasons[0] and "/html/file: an HTML" in reasons[1]
    assert "/wrong/file: other bytes" in reasons[2]


def test_nobody_listens(tmp_path, monkeypatch):
    file = RemoteFile("file", "0" * 64, ("http://127.0.0.1:1/file",))
    monkeypatch.setitem(DATASETS, "toy", (file,))
    with pytest.raises(DataNotFoundError, match=r"no connection \(.*refused"):
        download("toy", tmp_path)


# --- going on from a part ---


def leave_part(folder, content):
    (folder / "sub").mkdir()
    (folder / "sub" / "file.gz.part").write_bytes(content)


def test_a_broken_download_goes_on_where_it_stopped(offer, server, tmp_path):
    offer("cut")
    with pytest.raises(DataNotFoundError):
        download("toy", tmp_path)
    assert (tmp_path / "sub" / "file.gz.part").stat().st_size == 400_000
    offer("good")
    download("toy", tmp_path)
    assert server.requests == [("cut", None), ("good", "bytes=400000-")]
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT


def test_a_second_mirror_goes_on_from_the_first(offer, server, tmp_path):
    offer("cut", "good")
    download("toy", tmp_path)
    assert server.requests == [("cut", None), ("good", "bytes=400000-")]


@pytest.mark.parametrize("behaviour", ["without_range", "without_length"])
def test_a_server_without_range_sends_all_again(offer, server, tmp_path, behaviour):
    leave_part(tmp_path, CONTENT[:1000])
    offer(behaviour)
    download("toy", tmp_path)
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT
    assert server.requests == [(behaviour, "bytes=1000-")]


@pytest.mark.parametrize(
    "part", [HTML, b"\0" * 1000, CONTENT + b"more", b"\0" * len(CONTENT)], ids=len
)
def test_a_wrong_part_is_given_up(offer, tmp_path, part):
    leave_part(tmp_path, part)
    offer("good")
    download("toy", tmp_path)
    assert (tmp_path / "sub" / "file.gz").read_bytes() == CONTENT
    assert names_in(tmp_path / "sub") == ["file.gz"]


def test_a_whole_part_needs_no_request(offer, server, tmp_path):
    leave_part(tmp_path, CONTENT)
    offer("good")
    download("toy", tmp_path)
    assert server.requests == []
    assert names_in(tmp_path / "sub") == ["file.gz"]


def test_an_html_page_does_not_cost_what_was_there(offer, server, tmp_path):
    leave_part(tmp_path, CONTENT[:1000])
    offer("html", "good")
    download("toy", tmp_path)
    assert server.requests[-1] == ("good", "bytes=1000-")


# --- archives ---


def archive(*members):
    """Return a gzipped tar of (name, content) pairs and of TarInfo objects."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for member in members:
            info, content = member if isinstance(member, tuple) else (member, b"")
            if isinstance(info, str):
                info = tarfile.TarInfo(info)
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


SOUND = archive(special("folder", tarfile.DIRTYPE), ("folder/a", b"one"), ("folder/b", b"two"))


def put(folder, content):
    (folder / "sub").mkdir(exist_ok=True)
    (folder / "sub" / "file.gz").write_bytes(content)


def test_an_archive_is_unpacked_once(offer, server, tmp_path):
    offer(content=SOUND, folder="folder")
    put(tmp_path, SOUND)
    download("toy", tmp_path)
    unpacked = tmp_path / "sub" / "folder"
    assert {path.name: path.read_bytes() for path in unpacked.iterdir()} == {
        "a": b"one",
        "b": b"two",
    }
    (unpacked / "mine").write_bytes(b"")
    download("toy", tmp_path)
    assert (unpacked / "mine").exists()  # nothing was missing, so nothing was written
    assert server.requests == [] and names_in(tmp_path / "sub") == ["file.gz", "folder"]


def test_a_folder_that_lacks_something_is_unpacked_anew(offer, tmp_path):
    offer(content=SOUND, folder="folder")
    put(tmp_path, SOUND)
    download("toy", tmp_path)
    (tmp_path / "sub" / "folder" / "a").write_bytes(b"cut")
    (tmp_path / "sub" / "folder" / "b").write_bytes(b"")
    download("toy", tmp_path)
    assert (tmp_path / "sub" / "folder" / "b").read_bytes() == b"two"


@pytest.mark.parametrize(
    "member",
    [
        ("../outside", b"x"),
        ("folder/../../outside", b"x"),
        ("folder/..", b"x"),
        ("/outside", b"x"),
        ("folder/deep/file", b"x"),
        ("elsewhere/file", b"x"),
        special("folder/link", tarfile.SYMTYPE, "../../outside"),
        special("folder/link", tarfile.LNKTYPE, "../../outside"),
        special("folder/pipe", tarfile.FIFOTYPE),
        special("folder/device", tarfile.CHRTYPE),
    ],
    ids=lambda member: member[0] if isinstance(member, tuple) else f"{member.name} {member.type}",
)
def test_an_archive_writes_nowhere_else(offer, tmp_path, member):
    content = archive(("folder/a", b"one"), member)
    offer(content=content, folder="folder")
    put(tmp_path, content)
    with pytest.raises(
        DataError, match=r"\[download\] the archive holds .* no plain file in folder"
    ):
        download("toy", tmp_path)
    assert names_in(tmp_path) == ["sub"] and names_in(tmp_path / "sub") == ["file.gz"]


def test_a_broken_archive(offer, tmp_path):
    content = SOUND[: len(SOUND) // 2]
    offer(content=content, folder="folder")
    put(tmp_path, content)
    with pytest.raises(DataError, match="is no whole tar archive"):
        download("toy", tmp_path)
    assert "folder" not in names_in(tmp_path / "sub")


# --- the command ---


def test_command_prints_a_line_a_file(offer, tmp_path, capsys):
    offer("good")
    main(["toy", "--data-dir", str(tmp_path)])
    output = capsys.readouterr()
    assert output.out == f"{tmp_path}/sub/file.gz fetched and verified, 0.6 MB\n"
    assert output.err == ""


def test_command_works_without_tqdm(offer, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    offer("good")
    main(["toy", "--data-dir", str(tmp_path)])
    assert (tmp_path / "sub" / "file.gz").exists()


def test_command_fails_in_one_line(offer, tmp_path):
    offer("forbidden", "wrong")
    with pytest.raises(SystemExit) as caught:
        main(["toy", "--data-dir", str(tmp_path)])
    assert str(caught.value).startswith("[download] no mirror gave file.gz (")
    assert "\n" not in str(caught.value)


def test_command_reports_a_folder_that_cannot_be_made(offer, tmp_path):
    offer("good")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"\[download\] .*Not a directory"):
        main(["toy", "--data-dir", str(tmp_path / "file")])


def test_command_stopped_by_hand(offer, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    offer("good")
    monkeypatch.setattr(module, "receive", interrupt)
    with pytest.raises(SystemExit, match="the same command goes on from here"):
        main(["toy", "--data-dir", str(tmp_path)])


def test_command_in_its_own_process(tmp_path):
    """Runs as its users run it, with files that are there, and without a warning."""
    command = [sys.executable, "-W", "error", "-m", "needle.data.download"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "https_proxy": "127.0.0.1:1"}
    environment["no_proxy"] = ""  # so that nothing leaves this machine
    run = subprocess.run([*command, "--help"], env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and "cifar10" in run.stdout and run.stderr == ""
    run = subprocess.run(
        [*command, "ptb"], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 1 and run.stderr.count("\n") == 1
    assert str(tmp_path / "data" / "ptb" / "train.txt") in run.stderr


@pytest.mark.parametrize("name", ["mnist", "cifar10", "ptb"])
def test_known_data_sets_have_checksums_and_several_mirrors(name):
    for file in DATASETS[name]:
        assert len(file.sha256) == 64 and int(file.sha256, 16)
        assert len(set(file.mirrors)) >= 2
        assert all(url.startswith("https://") for url in file.mirrors)
    paths = {file.path for file in DATASETS[name]}
    assert len(paths) == {"mnist": 4, "cifar10": 1, "ptb": 2}[name]
