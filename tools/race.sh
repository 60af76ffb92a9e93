# The part of `make test` that runs with the race detector, which makes tests five to fifty times as slow: of the packages whose code
# starts goroutines, or guards something with a lock, the tests that have several at once. A table that is made once (sync.Once,
# sync.OnceValue) does not count; nor does the code of one command, which is a process of its own, or of tests, which live's run.
# Every test also runs without the detector; `make test-race` runs every test with it. With -l it prints the packages.
set -e
others='/condense/(test/(house|editor|fleet|peers|pluginexamples)|internal/testkit[^ ]*|cmd/condense/(cli|internal/(archive|cli|plugincmd))|internal/lab/score|internal/live/(store/storetest|wire)) '
packages=$(go list -f '{{.ImportPath}} {{.Dir}} {{join .GoFiles " "}}' ./... | grep -vE "$others" | while read -r package dir files; do
	cd "$dir"
	if [ -n "$files" ] && grep -qE '^[[:space:]]*go [A-Za-z_(]|\.Go\(|errgroup\.|sync\.(Mutex|RWMutex|WaitGroup|Map|Cond|Pool)|[^a-z]atomic\.|parallel\.[A-Z]' $files; then
		echo "$package"
	fi
done)
for must in live internal/plugins/supervise core internal/live/store; do # where the list would be wrong without them
	echo "$packages" | grep -q "/condense/$must\$" || { echo "race.sh: $must is missing in the list of packages" >&2; exit 1; }
done
[ "$1" != -l ] || { echo "$packages"; exit; }

# Where most tests have one goroutine, or repeat the same ones with other sessions: the tests that count.
chosen='config ^Test(Watch|Reload)
internal/lab ^Test(Guards|JudgeAgrees|Repeat$)
internal/value ^Test(Random|Growth|InPlace)$
test/runtime TestWatch$|Reattach|Promises|SoakHistories|SoakHistories
tokens Concurrently'

# Of live, with the detector: the tests with several clients or events at once, found by their words, each of generated clients (five
# instead of forty), and these. What one client does alone, each of them does too; so do those of two
# other generators. A test of memory is about memory.
raced="TestRestart TestSocketDrains $(awk '
	/^func Test/ { split($2, name, "("); test = name[1] }
	/^}/ { test = "" }
	test && test !~ /^Test(Memory|CompressGrowing|RecallToolGrowing|ForgottenTenant)/ && /(^|[^a-zA-Z])go func|\.Go\(|WaitGroup|together\(|startAlone\(|limited\(|silent\(|rapid\.Check\(/ { print test }
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
# regular expression does not change once it is compiled. Their callers are watched.
flags='-gcflags=modernc.org/...=-race=false -gcflags=regexp=-race=false -gcflags=regexp/syntax=-race=false'

# The linter has vetted the sources.
race="go test -race $flags -vet=off -shuffle=on -timeout 60m"

# The gateway's tests wait for much and keep one processor busy: the other packages have the second.
CONDENSE_SOAK_GATEWAY=2x6 $race -run "^(${pattern#|}|TestSoakGateway)\$" ./live -rapid.checks=5 &
live=$!
status=0
$race -skip '^TestModule' ./internal/plugins/supervise || status=$?
echo "$chosen" | while read -r package run; do
	$race -short -run "$run" "./$package" || exit 1
done || status=$?
# Tests that -short skips call the same concurrent code as others.
$race -short $(echo "$packages" | grep -vE "/condense/(live|internal/plugins/supervise|$(echo "$chosen" | cut -d' ' -f1 | paste -sd'|'))\$") || status=$?
wait $live || status=$?
exit $status
