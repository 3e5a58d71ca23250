#!/usr/bin/env bash
# Rewrites every file that is generated from other files of the repository. Run it after
# a change of facts, schema, rules, emitters or messages, and read the diff. It changes
# nothing when everything is up to date.
set -euo pipefail
cd "$(dirname "$0")/.."

# A package and its test that rewrites files with -update, in the order in which they
# build on each other. docs/docs_test.go checks that none is missing.
rewriters() {
	cat <<-'END'
		compiler/language/conform TestTheCarriedLanguageIsTheSchema
		compiler/language/conform TestTheStructsOfConfigAreTheSchema
		compiler/language/reference TestGeneratedPagesAreUpToDate
		schema/formats/boardfile TestTheSchemaIsTheType
		compiler/check TestTheListOfRulesIsUpToDate
		compiler/importer TestImport
		cmd/yoctune TestScripts
		golden TestEachExampleYieldsItsGoldenTree
		tests/series TestEachReleaseYieldsItsPinnedTree
		tests/reports TestTheTableIsUpToDate
		runtime/engine/pipeline TestPlanFixtureIsCurrent
		internal/synthetic TestTheDocsListTheDevices
		docs TestTheMapShowsEveryPackage
	END
}

go=${GO:-go}
"$go" run ./internal/cmd/facts update
"$go" test -count=1 ./schema/facts/... # a wrong fact ends here

failed=
while read -r package test; do
	"$go" test -count=1 "./$package" -run "^$test\$" -update || failed+=" $package"
done < <(rewriters)
# Emitters compare their trees with emittest, which has the flag.
mapfile -t recorded < <("$go" list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./emitters/... |
	awk '/emitters.emittest[] ]/ && $1 !~ /emittest$/ {print $1}') # not emitters/emittest itself
"$go" test -count=1 "${recorded[@]}" -update || failed+=" emitters"

# The registers of the CUDA kernels: minutes of nvcc, so only after a change of their
# sources. `make test` compares them in any case.
if [ -n "$(git status --porcelain -- runtime/engine/core/c runtime/engine/core/cuda)" ]; then
	tests/cuda/compile.sh --update
fi
git status --short
[ -z "$failed" ] || { echo "update: failed, so not everything is up to date:$failed" >&2; exit 1; }
