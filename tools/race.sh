# The part of `make test` that runs with the race detector, which makes tests five to fifty times as slow: of the packages in which
# goroutines of ours share memory, the tests that have several at once. Every test also runs without the detector; `make test-race` runs
# every test with it, in the nightly job too. With -l it prints the packages.
set -e
packages='core core/history live/internal/chain internal/live/job internal/live/queue internal/live/session internal/live/store
internal/live/tenant cmd/condense/internal/hook'
[ "$1" != -l ] || { printf '%s\n' live internal/plugins/supervise $packages; exit; }

# Of live, with the detector: the tests with several clients or events at once, found by their words, each of generated clients (five
# instead of forty), and these. What one client does alone, each of them does too; so do those of two
# other generators. A test of memory is about memory, one of processors about processors, and that of lineages has one goroutine.
raced="TestRestart TestSocketDrains $(awk '
	/^func Test/ { split($2, name, "("); test = name[1] }
	/^}/ { test = "" }
	test && test !~ /^Test(Memory|CompressGrowing|RecallToolGrowing|ForgottenTenant|TurnsBoundProcessors|L2L3L6Lineages)/ && /(^|[^a-zA-Z])go func|\.Go\(|WaitGroup|together\(|startAlone\(|limited\(|silent\(|rapid\.Check\(/ { print test }
' live/*_test.go | sort -u)"
pattern=
for test in $raced; do
	grep -qs "^func $test(" live/*_test.go || { echo "race.sh: there is no $test in live" >&2; exit 1; }
	pattern="$pattern|$test"
done
for must in TestConcurrentRequests TestTenantsDoNotMeet TestParallelSubAgents TestGrowingWithOrders; do # where the words would be wrong without them
	echo "$raced" | grep -q "^$must\$" || { echo "race.sh: $must is missing in the list of live's tests" >&2; exit 1; }
done

# Code of others that holds nothing of ours is not watched: SQLite, translated from C, is ten times as slow with the detector, and a
# regular expression does not change once it is compiled. Their callers are watched. Not so the driver modernc.org/sqlite: it has copies of
# sync.Map, and the linker would take one that is not watched for all.
flags='-gcflags=modernc.org/libc/...=-race=false -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=regexp=-race=false -gcflags=regexp/syntax=-race=false'

# The linter has vetted the sources.
race="go test -race $flags -vet=off -shuffle=on -timeout 60m"

# The gateway's tests wait for much and keep one processor busy: the other packages have the second.
CONDENSE_SOAK_GATEWAY=2x6 $race -run "^(${pattern#|}|TestSoakGateway)\$" ./live -rapid.checks=5 &
live=$!
status=0
$race -skip '^TestModule' ./internal/plugins/supervise || status=$?
# Tests that -short skips call the same concurrent code as others.
$race -short $(printf './%s ' $packages) || status=$?
wait $live || status=$?
exit $status
