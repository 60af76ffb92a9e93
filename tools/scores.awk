# Combines the tables of bench/results/presets.md into one: what every preset keeps at four sizes.
#
#	awk -f tools/scores.awk bench/results/presets.md
BEGIN { FS = " *[|] *"; split("10% 25% 50% real", sizes, " ") }
/^### / { size = $0; sub(/^### budget /, "", size); table = size in wanted }
BEGIN { for (i in sizes) wanted[sizes[i]] = 1 }
table && $2 == "strategy" { # columns are found by name: others come and go
	split("", column)
	for (i = 2; i < NF; i++) column[$i] = i
	for (name in needed) if (!(name in column)) { print "scores.awk: no column \"" name "\" in " FILENAME ":" FNR > "/dev/stderr"; exit failed = 1 }
	next
}
BEGIN { needed["needed later"]; needed["far back"]; needed["user's words"] }
table && $2 ~ /^[a-z]/ {
	if (!($2 in known)) { known[$2] = 1; order[++n] = $2 }
	split($column["far back"], far, " ")
	split($column["user's words"], user, " ")
	kept[$2, size] = $column["needed later"]; back[$2, size] = far[1]; said[$2, size] = user[1]
}
END {
	if (failed) exit 1
	print "| | needed later, at 10 % | 25 % | 50 % | recorded compactions | far back, at 10, 25, 50 % | user's words, at 10, 25 % |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		s = order[i]
		name = s ~ /\// ? "`" s "`" : s
		real = kept[s, "real"] == "" ? "–" : kept[s, "real"]
		print "| " name " | " kept[s, "10%"] " | " kept[s, "25%"] " | " kept[s, "50%"] " | " real " | " back[s, "10%"] ", " back[s, "25%"] ", " back[s, "50%"] " | " said[s, "10%"] ", " said[s, "25%"] " |"
	}
}
