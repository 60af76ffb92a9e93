# The part of `make test` that runs with the race detector, which makes tests five to fifty times as slow: the packages whose code
# or tests start goroutines, or guard something with a lock. A table that is made once (sync.Once, sync.OnceValue) does not
# count. Packages below test and bench start processes, which are built without it. Every test also runs without the detector, but for
# those of live, which run once; `make test-race` runs all of them with it. With -l it prints the packages.
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

# Long tests of the gateway in which one client sends one request after the other. The goroutines of the gateway do there what they do in
# all of its tests.
skipped='TestRecallToolRestart TestRecallToolOnward TestRecallToolHandles TestRecallToolMixed TestRecallTool TestPromisesAreKept
	TestShortenedResultsAreKept TestFullDiskStillCondensesForVendor TestComplaint01CacheReads TestComplaint04NoDrift
	TestComplaint06Restart TestComplaint15LeftAlone TestOwnAccountIsServedFromTheCache TestOwnAccountOnlyWithTheKeysThatTheUserChose
	TestOwnAccountIsLimitedWithoutStoppingTheAgent TestCompressOfManyTinyMessagesIsLinear TestForcedEpochsAreOfTheProfile
	TestMemoryOfALargeBody TestEveryWire TestEveryWireObserved TestEveryFeatureOnEveryWire TestNothingOfOneVendorReachesAnother'
pattern=
for test in $skipped; do
	grep -qs "^func $test(" live/*_test.go || { echo "race.sh: there is no $test in live" >&2; exit 1; }
	pattern="$pattern|$test"
done

# Generated clients run without the detector too: there they are forty instead of five.
generated=$(awk '/^func Test/ { split($2, name, "("); test = name[1] } /rapid\.Check\(/ { print test }' live/*_test.go | sort -u)
[ -n "$generated" ] || { echo "race.sh: live has no test with generated clients" >&2; exit 1; }
once=$pattern
for test in $generated; do
	once="$once|$test"
done

# Code of others that holds nothing of ours is not watched: SQLite, translated from C, is ten times as slow with the detector, and a
# regular expression does not change once it is compiled. Their callers are watched.
flags='-gcflags=modernc.org/...=-race=false -gcflags=regexp=-race=false -gcflags=regexp/syntax=-race=false'

# The linter has vetted the sources.
race="go test -race $flags -vet=off -shuffle=on -timeout 60m"

# Nearly all of these two is concurrent: with the tests that -short skips. Five generated clients show a race as well as forty. The
# gateway's tests wait for much and keep one processor busy: the other packages have the second.
{ $race -skip "^(${pattern#|})\$" ./live -rapid.checks=5 && go test -vet=off -shuffle=on -timeout 60m -run "^(${once#|})\$" ./live; } &
live=$!
status=0
$race ./internal/plugins/supervise || status=$?
# Tests that -short skips call the same concurrent code as others: lab.Run with several jobs is raced by TestGuards.
$race -short $(echo "$packages" | grep -v '/condense/\(live\|internal/plugins/supervise\)$') || status=$?
wait $live || status=$?
exit $status
