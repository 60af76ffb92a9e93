"""Builds the package of pyproject.toml, with nothing but Python 3.11: a wheel is an archive with a list of its files."""

import base64
import hashlib
import io
import pathlib
import tarfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
NAME = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}"
TIME = (2026, 1, 1, 0, 0, 0)  # the same sources are the same file

METADATA = "".join(
    line + "\n"
    for line in [
        "Metadata-Version: 2.1",
        f"Name: {PROJECT['name']}",
        f"Version: {PROJECT['version']}",
        f"Summary: {PROJECT['description']}",
        f"License: {PROJECT['license']['text']}",
        f"Requires-Python: {PROJECT['requires-python']}",
        *[f"Project-URL: {name}, {url}" for name, url in PROJECT["urls"].items()],
        *[f"Requires-Dist: {package}" for package in PROJECT["dependencies"]],
    ]
).encode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = NAME + ".dist-info"
    files = {f"condense/{p.name}": p.read_bytes() for p in sorted((HERE / "condense").glob("*.py"))}
    files[info + "/METADATA"] = METADATA
    files[info + "/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: condense\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[info + "/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = NAME + "-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    sdist = NAME + ".tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / sdist, "w:gz") as archive:
        for path in [HERE / "pyproject.toml", HERE / "build_backend.py", *sorted((HERE / "condense").glob("*.py"))]:
            archive.add(path, f"{NAME}/{path.relative_to(HERE)}")
        entry = tarfile.TarInfo(f"{NAME}/PKG-INFO")
        entry.size = len(METADATA)
        archive.addfile(entry, io.BytesIO(METADATA))
    return sdist
