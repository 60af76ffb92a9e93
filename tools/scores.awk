# Combines the tables of docs/results.md into one: what every preset keeps at four sizes.
#
#	awk -f tools/scores.awk docs/results.md
BEGIN { FS = " *[|] *"; split("10% 25% 50% real", sizes, " ") }
/^### / { size = $0; sub(/^### budget /, "", size); table = size in wanted }
BEGIN { for (i in sizes) wanted[sizes[i]] = 1 }
table && $2 ~ /^[a-z]/ && $2 != "strategy" {
	if (!($2 in known)) { known[$2] = 1; order[++n] = $2 }
	panel = $4
	sub(/ *\(.*/, "", panel)
	split($5, far, " ")
	split($6, user, " ")
	kept[$2, size] = panel; back[$2, size] = far[1]; said[$2, size] = user[1]
}
END {
	print "| | needed later, at 10 % | 25 % | 50 % | recorded compactions | far back, at 10, 25, 50 % | user's words, at 10, 25 % |"
	print "|---|---|---|---|---|---|---|"
	for (i = 1; i <= n; i++) {
		s = order[i]
		name = s ~ /\// ? "`" s "`" : s
		real = kept[s, "real"] == "" ? "–" : kept[s, "real"]
		print "| " name " | " kept[s, "10%"] " | " kept[s, "25%"] " | " kept[s, "50%"] " | " real " | " back[s, "10%"] ", " back[s, "25%"] ", " back[s, "50%"] " | " said[s, "10%"] ", " said[s, "25%"] " |"
	}
}
