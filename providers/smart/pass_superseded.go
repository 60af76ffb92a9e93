package smart

import (
	"context"

	"github.com/condensehq/condense/internal/dialog"
)

type supersededSettings struct {
	Reads  bool `json:"reads" doc:"what a read showed goes if a later read shows the same lines of the file or more"`
	Writes bool `json:"writes" doc:"what a call wrote goes if a later read shows the whole file"`
	By     bool `json:"by_writes" doc:"a later call that writes the whole file counts as a read of it"`
	Runs   bool `json:"runs" doc:"what a command, a list or a search answered goes if the same call was made again later, whatever it answered then"`
}

var supersededPass = referring(define("superseded", classSuperseded, "",
	"Takes out old states of files of which a newer state stands below. Ranges of lines are respected.",
	supersededSettings{Reads: true, Writes: true},
	func(_ context.Context, w *work, c supersededSettings) error {
		// From the newest on: which lines of each file stand below, and where.
		type sight struct {
			lines dialog.LineRange
			at    int
		}
		below := map[string][]sight{}
		covered := func(f dialog.File) int {
			for _, s := range below[f.Path] {
				if s.lines.Covers(f.Range) {
					return s.at
				}
			}
			return -1
		}
		if c.Runs {
			w.supersedeRuns()
		}
		for i := len(w.pieces) - 1; i >= 0; i-- {
			p := &w.pieces[i]
			if p.use == nil || p.gone || w.hidden[w.message(i)] {
				continue
			}
			u := p.use
			switch {
			case p.kind == dialog.KindToolResult && u.Info.Family == dialog.FamilyRead && p.file.Path != "" && !u.IsError:
				if isStub(p.text) {
					continue
				}
				w.looked()
				if at := covered(p.file); at >= 0 && c.Reads {
					what := seeNewer
					if w.pieces[at].text == p.text {
						what = sameText
					}
					w.leave(i, stub{where: w.refer(i, what, at)})
					continue
				}
				if p.file.Range != dialog.SeveralRanges && !unreadable(p.text) && len(below[p.file.Path]) < maxSights {
					below[p.file.Path] = append(below[p.file.Path], sight{p.file.Range, i})
				}
			case p.kind == dialog.KindToolCall && u.Info.Family == dialog.FamilyWrite && len(u.Info.Files) == 1 && !u.IsError:
				w.looked()
				f := dialog.File{Path: u.Info.Files[0].Path}
				if at := covered(f); at >= 0 && c.Writes {
					w.shortenCall(i, 0, w.refer(i, seeNewer, at))
					continue
				}
				if u.results.Start < u.results.End && c.By {
					below[f.Path] = append(below[f.Path], sight{dialog.LineRange{}, i})
				}
			}
		}
		return nil
	}))

// unreadable reports whether the answer to a read is the complaint of a tool that does not
// mark its errors as such: such an answer shows no state of the file.
func unreadable(text string) bool { return len(text) < 400 && wrong(text) > worthLittle }

// supersedeRuns takes out what calls answered that were made again with the same arguments.
// What failed stays: how it failed may be what the later call was for.
func (w *work) supersedeRuns() {
	type run struct{ name, args string }
	newest := map[run]int{}
	for k := len(w.uses) - 1; k >= 0; k-- {
		u := &w.uses[k]
		switch u.Info.Family {
		case dialog.FamilyCommand, dialog.FamilyList, dialog.FamilySearch:
		case dialog.FamilyUnknown, dialog.FamilyRead, dialog.FamilyWrite, dialog.FamilyEdit, dialog.FamilyWeb, dialog.FamilyPlan, dialog.FamilyAsk, dialog.FamilyDelegate, dialog.FamilyDone:
			continue
		}
		if !u.Called || u.IsError || u.results.End-u.results.Start != 1 || w.hidden[u.Message] {
			continue
		}
		r := run{u.Name, w.pieces[u.call].text}
		at, again := newest[r]
		if !again {
			newest[r] = u.results.Start
			continue
		}
		w.looked()
		w.leave(u.results.Start, stub{where: w.refer(u.results.Start, seeNewer, at)})
	}
}

// maxSights bounds the work on a file that is read in ever new pieces.
const maxSights = 64
