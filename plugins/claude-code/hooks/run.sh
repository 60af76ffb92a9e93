#!/bin/sh
# Answers a hook with condense. If condense is missing, the start of a session says so, and all else is as without the plugin.
if ! command -v condense >/dev/null 2>&1; then
	if [ "$1" = start ]; then
		echo '{"systemMessage": "condense: the program condense is not in PATH, so the plugin does nothing. Install it with: go install github.com/condensehq/condense/cmd/condense@latest"}'
	fi
	exit 0
fi
[ "$1" = start ] && exit 0
condense hook claude --recall || exit 0 # Claude Code takes other codes for an objection
