#!/bin/sh
# Generates the Go code of inference.proto with pinned versions: protoc from PyPI's grpcio-tools, the
# plug-ins from their Go modules.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.85.1
GOBIN=$dir go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
GOBIN=$dir go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
PATH=$dir:$PATH "$dir/venv/bin/python" -m grpc_tools.protoc --proto_path=. --go_out=. --go_opt=paths=source_relative \
	--go-grpc_out=. --go-grpc_opt=paths=source_relative inference.proto
