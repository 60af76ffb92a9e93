package smart

// passes are all passes that there are, in the order in which they are documented. A
// function, because a variable would refer to itself: a pass may look up others.
func passes() []pass {
	all := []pass{
		layoutPass, duplicatesPass, environmentPass, supersededPass, nearPass,
		maskPass, prunePass, valuePass, headTailPass, cutPass, windowPass, scorePass, argsPass, reasoningPass, prosePass, digestPass, summarizePass,
	}
	for i := range all {
		switch all[i].name {
		case valuePass.name, windowPass.name, scorePass.name, digestPass.name:
			all[i].open = true
		}
	}
	return all
}

func findPass(name string) (*pass, bool) {
	all := passes()
	for i := range all {
		if all[i].name == name {
			return &all[i], true
		}
	}
	return nil, false
}

func passNames() []string {
	var names []string
	for _, p := range passes() {
		names = append(names, p.name)
	}
	return names
}
