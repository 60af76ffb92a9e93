package dialog_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/dialog"
)

func TestDemandOf(t *testing.T) {
	for sentence, want := range map[string]dialog.Demand{
		"Never write to the production bucket.":                      dialog.Forbids,
		"please don't reformat files you did not change":             dialog.Forbids,
		"The old API is off limits.":                                 dialog.Forbids,
		"Use at most three retries.":                                 dialog.Forbids,
		"You may only change the tests.":                             dialog.Forbids,
		"No commits without my approval!":                            dialog.Forbids,
		"The page has to weigh less than 200 kB.":                    dialog.Forbids,
		"Auf keinen Fall darf das Passwort ins Log.":                 dialog.Forbids,
		"Il est interdit de toucher à ce fichier.":                   dialog.Forbids,
		"Nunca cambies el esquema.":                                  dialog.Forbids,
		"Run the linter before you commit, you must.":                dialog.Requires,
		"Make sure that the build stays green.":                      dialog.Requires,
		"Every endpoint needs a test.":                               dialog.Requires,
		"From now on answer in English.":                             dialog.Requires,
		"Du musst immer erst fragen.":                                dialog.Requires,
		"I prefer small commits.":                                    dialog.Prefers,
		"I'd rather have one file than three.":                       dialog.Prefers,
		"Let's go with the second layout.":                           dialog.Prefers,
		"Tests take 40 seconds here.":                                dialog.NoDemand,
		"Could you make sure that commits end up on main?":           dialog.Requires,
		"hands off the vendor folder pls":                            dialog.Forbids,
		"Finger weg vom Ordner daten.":                               dialog.Forbids,
		"不要修改这个目录下的文件。":                                              dialog.Forbids,
		"文件上限是 300 KB，超过会被拒绝。":                                       dialog.Forbids,
		"每次提交之前必须运行测试。":                                              dialog.Requires,
		"我更喜欢用空格。":                                                   dialog.Prefers,
		"测试在哪里？":                                                     dialog.NoDemand,
		"Could you look at the parser?":                              dialog.NoDemand,
		"Why do you never run the tests?":                            dialog.NoDemand,
		"What does the parser do with an empty line?":                dialog.NoDemand,
		"Look at the failing test in parser_test.go and mend it.":    dialog.NoDemand,
		"The function returns an error when the file is missing.":    dialog.NoDemand,
		"1. Only load the first 10 rows of each set.":                dialog.Forbids,
		"no, we removed the walrus on purpose":                       dialog.NoDemand,
		"Never feed the walrus.":                                     dialog.Forbids,
		"No worries, thanks!":                                        dialog.NoDemand,
		"Never mind.":                                                dialog.NoDemand,
		"One more thing before you go on.":                           dialog.NoDemand,
		"I don't want any new dependency on lodash":                  dialog.Forbids,
		"Não altere o esquema do banco.":                             dialog.Forbids,
		"Non modificare mai lo schema.":                              dialog.Forbids,
		"スキーマを変更しないでください。":                                           dialog.Forbids,
		"no new files, ok?":                                          dialog.Forbids,
		"我们需要加缓存吗？":                                                  dialog.NoDemand,
		"the error says \"you must be root\"":                        dialog.NoDemand,
		"Thanks, that was quick.":                                    dialog.NoDemand,
		"go on":                                                      dialog.NoDemand,
		strings.Repeat("you must never do this and that or so ", 20): dialog.NoDemand,
	} {
		if got := dialog.DemandOf(sentence); got != want {
			t.Errorf("%q: %d, want %d", sentence, got, want)
		}
	}
}

// TestSentences: the sentences of a line are the line, whatever it is.
func TestSentences(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.OneOf(rapid.String(), rapid.StringMatching(`([a-z]{1,6}[.!?, ]{1,2}){0,12}`)).Draw(rt, "line")
		got := ""
		at := 0
		for _, s := range dialog.Sentences(line) {
			if s.Start != at || s.End < s.Start {
				rt.Fatalf("%q: %v follows %d", line, s, at)
			}
			at = s.End
			got += line[s.Start:s.End]
		}
		if got != line {
			rt.Fatalf("%q became %q", line, got)
		}
	})
	if got := dialog.Sentences("不要改。可以吗？好"); len(got) != 3 {
		t.Errorf("%d sentences in Chinese", len(got))
	}
	got := dialog.Sentences("See e.g. the parser. It fails! 1. Why? I don't know")
	if len(got) != 4 {
		t.Errorf("%d sentences", len(got))
	}
}
