# Says which tests `make test` skips because a program is missing, a line for each.
missing() {
	echo "skipped, because there is no $1: $2"
}
without() {
	command -v "$1" >/dev/null 2>&1 || missing "$1" "$2"
}
command -v cc >/dev/null 2>&1 || without gcc "the race detector"
without node "plugins in Node, the server of an editor, a vendor's mock"
without npm "installing what those need"
without python3 "plugins in Python"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || without initdb "stores in PostgreSQL, several gateways"
without git "ignored files of a real repository"
without bash "job control of condense wrap"
without curl "an agent whose vendor cannot be reached"
