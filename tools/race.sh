# The part of `make test` that runs with the race detector, which makes tests five to fifty times as slow: the packages whose code
# or tests start goroutines, or guard something with a lock. A table that is made once (sync.Once, sync.OnceValue) does not
# count. Every test also runs without the detector; `make test-race` runs all of them with it. With -l it prints the packages.
set -e
packages=$(go list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -v '/condense/\(test/\(house\|editor\|fleet\|peers\|pluginexamples\)\|bench\)' | while read -r package dir; do
	if grep -qE '^[[:space:]]*go [A-Za-z_(]|\.Go\(|errgroup\.|sync\.(Mutex|RWMutex|WaitGroup|Map|Cond|Pool)|[^a-z]atomic\.|parallel\.[A-Z]' "$dir"/*.go; then
		echo "$package"
	fi
done)
for must in live test/runtime internal/plugins/supervise core internal/live/store; do # where the list would be wrong without them
	echo "$packages" | grep -q "/condense/$must\$" || { echo "race.sh: $must is missing in the list of packages" >&2; exit 1; }
done
[ "$1" != -l ] || { echo "$packages"; exit; }

# Tests that are long with the detector. Other tests call the same concurrent code: lab.Run with several jobs is raced by TestGuards.
skipped='TestARuleGivesAnySessionAMode TestJudgeAgreesWithRun TestCache TestRecordedModel TestPlan TestSkipped
	TestExamineReadsASessionOnceAndSaysHowFarItIs TestHandoverWithAFlood TestHandoverConforms TestHandoverSmartKnowsTheAccount
	TestNewestResultsCanBeRead TestReadsOnce'
pattern=
for test in $skipped; do
	grep -rqs --include='*_test.go' "^func $test(" . || { echo "race.sh: there is no $test" >&2; exit 1; }
	pattern="$pattern|$test"
done

status=0
# Nearly all of these two is concurrent: with the tests that -short skips. Five generated clients show a race as well as forty.
go test -race -shuffle=on -timeout 60m ./live -rapid.checks=5 || status=$?
go test -race -shuffle=on -timeout 60m ./internal/plugins/supervise || status=$?
go test -race -short -shuffle=on -timeout 60m -skip "^(${pattern#|})\$" $(echo "$packages" | grep -v '/condense/\(live\|internal/plugins/supervise\)$') || status=$?
exit $status
