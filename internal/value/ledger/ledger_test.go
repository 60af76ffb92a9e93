package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/ledger"
)

// shown returns the runs of a file as text, the number of the first line before each.
func shown(f *ledger.File) string {
	var b strings.Builder
	for _, r := range f.Runs {
		fmt.Fprintf(&b, "@%d\n", r.First)
		for _, l := range r.Lines {
			b.WriteString(l.Text + "\n")
		}
	}
	return b.String()
}

func replay(calls ...[3]string) *ledger.Ledger { return replayAfter("Go on.", calls...) }

func replayAfter(text string, calls ...[3]string) *ledger.Ledger {
	messages := []core.Message{coretest.User(core.Text(text))}
	for i, c := range calls {
		id := fmt.Sprint("c", i)
		messages = append(messages, coretest.Assistant(core.ToolCall{ID: id, Name: c[0], Args: c[1]}), coretest.User(coretest.Result(id, c[2])))
	}
	messages = coretest.Conversation(messages...)
	l := new(ledger.Ledger)
	l.Replay(messages, dialog.Read(messages), 0, len(messages))
	return l
}

// TestChanges: commands that change, move or remove files are told from those that only look.
func TestChanges(t *testing.T) {
	for command, want := range map[string]bool{
		"sed -i 's/8080/9090/' conf/app.conf": true, "cd x && rm old.go": true, "echo hi > notes.txt": true, "git checkout main.go": true,
		"sed -n 1,40p main.go": false, "cat a.go | grep x": false, "go test ./... 2>&1": false, "make >/dev/null": false, "ls": false,
		"prettier --write src/a.ts": true, "python3 -c \"open('a.txt','w').write('x')\"": true,
	} {
		if got := ledger.Changes(command); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

func TestReplay(t *testing.T) {
	for name, c := range map[string]struct {
		calls [][3]string
		want  string
	}{
		"a read with numbers":                   {[][3]string{{"Read", `{"file_path":"/r/a.go","offset":10}`, "    10→one\n    11→two"}}, "@10\none\ntwo\n"},
		"what a condensation left has no place": {[][3]string{{"Bash", `{"command":"sed -n 20,90p a.go"}`, "far below\n[… 70 lines h:0123456789]"}}, "@0\nfar below\n"},
		"two reads that meet": {[][3]string{
			{"Read", `{"file_path":"/r/a.go","offset":1}`, "1→one\n2→two"},
			{"Read", `{"file_path":"/r/a.go","offset":3}`, "3→three"},
		}, "@1\none\ntwo\nthree\n"},
		"a newer read replaces": {[][3]string{
			{"Read", `{"file_path":"/r/a.go"}`, "1→one\n2→two\n3→three"},
			{"Read", `{"file_path":"a.go","offset":2,"limit":1}`, "2→second"},
		}, "@1\none\nsecond\nthree\n"},
		"an edit moves what is below": {[][3]string{
			{"Read", `{"file_path":"/r/a.go"}`, "1→one\n2→two"},
			{"Read", `{"file_path":"/r/a.go","offset":20}`, "20→far"},
			{"Edit", `{"file_path":"/r/a.go","old_string":"two","new_string":"two\nand more"}`, "done"},
		}, "@1\none\ntwo\nand more\n@21\nfar\n"},
		"within lines": {[][3]string{
			{"read", `{"path":"a.go"}`, "f(a, b)\ng(c)"},
			{"edit", `{"path":"a.go","oldText":"b)\ng(","newText":"x)\nh("}`, "done"},
		}, "@1\nf(a, x)\nh(c)\n"},
		"everywhere": {[][3]string{
			{"Write", `{"file_path":"a.go","content":"a a\nb\na\n"}`, "done"},
			{"Edit", `{"file_path":"a.go","old_string":"a","new_string":"aa","replace_all":true}`, "done"},
		}, "@1\naa a\nb\naa\n"},
		"an edit that failed": {[][3]string{
			{"Read", `{"file_path":"a.go"}`, "1→one"},
			{"Edit", `{"file_path":"a.go","old_string":"one","new_string":"1"}`, "Error: String to replace not found in file."},
		}, "@1\none\n"},
		"of what is not known": {[][3]string{{"Edit", `{"file_path":"a.go","old_string":"one","new_string":"1\n2"}`, "done"}}, "@0\n1\n2\n"},
		"a patch": {[][3]string{
			{"exec_command", `{"cmd":"sed -n '5,7p' src/a.go"}`, "Process exited with code 0\nOutput:\nfive\nsix\nseven"},
			{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: src/a.go\n@@\n five\n-six\n+6\n seven\n*** End Patch"}`, "Success."},
		}, "@5\nfive\n6\nseven\n"},
		"a patch that adds": {[][3]string{
			{"shell", `{"command":["apply_patch","*** Begin Patch\n*** Add File: src/a.go\n+one\n+two\n*** End Patch"]}`, "Success."},
		}, "@1\none\ntwo\n"},
		"a patch that removes": {[][3]string{
			{"Write", `{"file_path":"src/a.go","content":"one"}`, "done"},
			{"apply_patch", `{"input":"*** Begin Patch\n*** Delete File: src/a.go\n*** End Patch"}`, "Success."},
		}, ""},
		"a cell of a notebook": {[][3]string{
			{"Read", `{"file_path":"/r/a.ipynb"}`, "<cell id=\"1\">import os</cell id=\"1\">\n<cell id=\"2\">old = 1</cell id=\"2\">"},
			{"NotebookEdit", `{"notebook_path":"/r/a.ipynb","cell_id":"2","new_source":"new = 2"}`, "Updated cell 2 with new = 2"},
		}, "@1\n<cell id=\"1\">import os</cell id=\"1\">\n<cell id=\"2\">new = 2</cell id=\"2\">\n"},
		"a cell that nobody showed": {[][3]string{
			{"Read", `{"file_path":"/r/a.ipynb"}`, "<cell id=\"1\">import os</cell id=\"1\">"},
			{"NotebookEdit", `{"notebook_path":"/r/a.ipynb","cell_id":"2","new_source":"new = 2"}`, "Updated cell 2 with new = 2"},
		}, "@0\nnew = 2\n"},
		"a new cell of a notebook": {[][3]string{
			{"Read", `{"file_path":"/r/a.ipynb"}`, "1→one"},
			{"NotebookEdit", `{"notebook_path":"/r/a.ipynb","cell_id":"1","edit_mode":"insert","new_source":"two"}`, "Inserted cell"},
		}, "@1\none\n@0\ntwo\n"},
		"an edit of OpenCode": {[][3]string{
			{"read", `{"filePath":"a.go"}`, "00001| one\n00002| two"},
			{"edit", `{"filePath":"a.go","oldString":"two","newString":"2"}`, ""},
		}, "@1\none\n2\n"},
		"an edit of Antigravity": {[][3]string{
			{"view_file", `{"AbsolutePath":"/r/a.go"}`, "1: one\n2: two"},
			{"replace_file_content", `{"TargetFile":"/r/a.go","TargetContent":"two","ReplacementContent":"2"}`, "done"},
		}, "@1\none\n2\n"},
		"a file that was removed": {[][3]string{
			{"Write", `{"file_path":"/r/a.go","content":"one"}`, "done"},
			{"Bash", `{"command":"cd /r && rm -f a.go && ls"}`, "b.go"},
		}, ""},
		"blocks of SEARCH": {[][3]string{
			{"read_file", `{"path":"a.go"}`, "1 | one\n2 | two"},
			{"apply_diff", `{"path":"a.go","diff":"<<<<<<< SEARCH\n:start_line:2\n-------\ntwo\n=======\n2\n>>>>>>> REPLACE"}`, "done"},
		}, "@1\none\n2\n"},
		"what was left out has no place": {[][3]string{{"Read", `{"file_path":"a.go"}`, "one\n[… 40 lines h:0123456789]\nfar"}}, "@0\nfar\n@1\none\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l := replay(c.calls...)
			if len(l.Files) != 1 {
				t.Fatalf("%d files, want 1", len(l.Files))
			}
			got := shown(l.Files[0])
			if name == "what was left out has no place" {
				got = shown(&ledger.File{Runs: []ledger.Run{l.Files[0].Runs[1], l.Files[0].Runs[0]}})
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFormerLinesAreKnown: a line that an edit, a newer read or a new file replaced is known to be gone, under each spelling of the
// path, until it comes back.
func TestFormerLinesAreKnown(t *testing.T) {
	const old, now = "value = queue.Next() # former", "value = jobs.Next() # present"
	for name, calls := range map[string][][3]string{
		"a newer read":                 {{"Read", `{"file_path":"/r/a.py"}`, "1→" + old}, {"Read", `{"file_path":"/r/a.py"}`, "1→" + now}},
		"an edit":                      {{"Read", `{"file_path":"/r/a.py"}`, "1→" + old}, {"Edit", `{"file_path":"a.py","old_string":"queue.Next() # former","new_string":"jobs.Next() # present"}`, "done"}},
		"an edit of what is not known": {{"Edit", `{"file_path":"a.py","old_string":"` + old + `","new_string":"` + now + `"}`, "done"}},
		"a new file":                   {{"Write", `{"file_path":"a.py","content":"` + old + `"}`, "done"}, {"Write", `{"file_path":"a.py","content":"` + now + `"}`, "done"}},
		"Windows":                      {{"Read", `{"file_path":"C:\\src\\a.py"}`, "1→" + old}, {"Read", `{"file_path":"c:/src/a.py"}`, "1→" + now}},
		"WSL":                          {{"Read", `{"file_path":"C:/src/a.py"}`, "1→" + old}, {"Read", `{"file_path":"/mnt/c/src/a.py"}`, "1→" + now}},
		"the shell of Git":             {{"Read", `{"file_path":"/c/src/a.py"}`, "1→" + old}, {"Read", `{"file_path":"C:\\src\\a.py"}`, "1→" + now}},
		"a shorter file":               {{"Read", `{"file_path":"a.py"}`, "1→first\n2→" + old}, {"Read", `{"file_path":"a.py"}`, "1→" + now}},
		"a shorter file, no numbers":   {{"read_file", `{"path":"a.py"}`, "first\n" + old}, {"read_file", `{"path":"a.py"}`, now}},
		"a cell of a notebook":         {{"Read", `{"file_path":"/r/a.ipynb"}`, "<cell id=\"c1\">import os</cell id=\"c1\">\n<cell id=\"c2\">import x\n" + old + "\nlast()</cell id=\"c2\">"}, {"NotebookEdit", `{"notebook_path":"/r/a.ipynb","cell_id":"c2","new_source":"` + now + `"}`, "done"}},
		"a command, then a part": {
			{"Edit", `{"file_path":"/r/a.py","old_string":"x","new_string":"` + old + `"}`, "done"},
			{"Bash", `{"command":"sed -i -e s/queue/jobs/ -e s/former/present/ /r/a.py"}`, ""},
			{"Read", `{"file_path":"/r/a.py","offset":7,"limit":2}`, "7→with pool:\n8→" + now},
		},
		"a patch": {{"Read", `{"file_path":"a.py"}`, "1→" + old}, {"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.py\n@@\n-` + old + `\n+` + now + `\n*** End Patch"}`, "ok"}},
	} {
		l := replay(calls...)
		if gone := l.Superseded(); len(l.Files) != 1 || gone[old] == 0 || gone[now] > 0 {
			t.Errorf("%s: %d files, former lines %v", name, len(l.Files), gone)
		}
		back := replay(append(calls, [3]string{"Read", `{"file_path":"` + strings.ReplaceAll(l.Files[0].Path, `\`, "/") + `"}`, "1→" + old})...)
		if back.Superseded()[old] > 0 {
			t.Errorf("%s: the line is back", name)
		}
	}
}

// TestRelativePathsBeginInTheFolder: where the session says in which folder it works, a relative path is the file there.
func TestRelativePathsBeginInTheFolder(t *testing.T) {
	for name, folder := range map[string]string{"Claude Code": "<env>\nWorking directory: /r\n</env>", "Codex": "<environment_context>\n  <cwd>/r</cwd>"} {
		var calls [][3]string
		for _, read := range [][2]string{
			{"/r/sub/a.py", "the other file"},
			{"/r/a.py", "the former text"},
			{"README.md", "the former words"},
			{"a.py", "the present text"},
			{"/r/README.md", "the present words"},
		} {
			calls = append(calls, [3]string{"Read", `{"file_path":"` + read[0] + `"}`, "1→" + read[1]})
		}
		l := replayAfter(folder, calls...)
		if gone := l.Superseded(); len(l.Files) != 3 || gone["the former text"] == 0 || gone["the former words"] == 0 || len(gone) != 2 {
			t.Errorf("%s: %d files, former lines %v", name, len(l.Files), gone)
		}
	}
}

// TestWrittenIsKnown: after any edits of a file that was written, the ledger has the file, and each line that an edit
// replaced is gone.
func TestWrittenIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.StringMatching(`[a-c]{1,3}`)
		file := rapid.SliceOfN(line, 1, 12).Draw(t, "file")
		text := strings.Join(file, "\n")
		l := new(ledger.Ledger)
		f := l.File("a.go")
		f.Write(text, 0)
		for m := range rapid.IntRange(1, 8).Draw(t, "edits") {
			from := rapid.IntRange(0, len(text)).Draw(t, "from")
			to := rapid.IntRange(from, len(text)).Draw(t, "to")
			old := text[from:to]
			if old == "" || strings.Count(text, old) != 1 || strings.TrimSuffix(text[:from]+text[to:], "\n") == "" {
				continue
			}
			fresh := strings.Join(rapid.SliceOfN(line, 1, 4).Draw(t, "new"), "\n")
			if !f.Edit(old, fresh, false, m+1) {
				t.Fatalf("%q is not found in\n%s", old, shown(f))
			}
			text = strings.Replace(text, old, fresh, 1)
			if got := shown(f); got != "@1\n"+text+"\n" {
				t.Fatalf("after the edit of %q the ledger has\n%s\nthe file is\n%s", old, got, text)
			}
		}
		n := 0
		for _, b := range f.Blocks() {
			n += len(b.Lines)
		}
		if n != strings.Count(text, "\n")+1 {
			t.Fatalf("blocks have %d lines of\n%s", n, text)
		}
	})
}

// TestShellWrites: what a command replaces, writes or appends is known if its text says it, and is not if the shell or a pattern decides.
func TestShellWrites(t *testing.T) {
	read := [3]string{"Read", `{"file_path":"/r/app.conf"}`, "1\thost = a.b\n2\tport = 80"}
	bash := func(command string) [3]string {
		args, err := json.Marshal(map[string]string{"command": command, "workdir": "/r"})
		if err != nil {
			t.Fatal(err)
		}
		return [3]string{"exec_command", string(args), ""}
	}
	for command, want := range map[string]string{
		`sed -i 's/port = 80/port = 90/' app.conf && make`: "@1\nhost = a.b\nport = 90\n",
		`sed -i "s|a\.b|c/d|g" /r/app.conf`:                "@1\nhost = c/d\nport = 80\n",
		`sed -i 's/a.b/a\nb/' app.conf`:                    "@1\nhost = a.b\nport = 80\nunsure",
		`sed -i 's/o/0/' app.conf`:                         "@1\nh0st = a.b\np0rt = 80\n",
		`sed -i 's/[0-9]*/90/' app.conf`:                   "@1\nhost = a.b\nport = 80\nunsure",
		`sed -i 's/port = 80/port = 90/' other.conf`:       "@1\nhost = a.b\nport = 80\n",
		"cat > app.conf <<'EOF'\nrm x\nport = $P\nEOF\nls": "@1\nrm x\nport = $P\n",
		"cat <<EOF >> app.conf\nuser = c\nEOF":             "@1\nhost = a.b\nport = 80\n@0\nuser = c\n",
		"cat > app.conf <<EOF\nport = $P\nEOF":             "@1\nhost = a.b\nport = 80\nunsure",
		"cd /q && cat > app.conf <<'EOF'\nnew = 1\nEOF":    "@1\nhost = a.b\nport = 80\n",
	} {
		f := replay(read, bash(command)).File("/r/app.conf")
		got := shown(f)
		if f.Unsure > 0 {
			got += "unsure"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestNativePatch: a patch that is all of a call's input changes its file, named from the folder of the commands.
func TestNativePatch(t *testing.T) {
	l := replay(
		[3]string{"exec_command", `{"cmd":"cat app.py","workdir":"/r"}`, "a = 1\nb = 2"},
		[3]string{"exec_command", `{"cmd":"cat app.py","workdir":"/r/front"}`, "c = 3"},
		[3]string{"apply_patch", "*** Begin Patch\n*** Update File: /r/app.py\n@@\n a = 1\n-b = 2\n+b = 4\n*** End Patch", "Success."})
	if got := shown(l.File("/r/app.py")) + shown(l.File("/r/front/app.py")); got != "@1\na = 1\nb = 4\n@1\nc = 3\n" {
		t.Errorf("%q", got)
	}
}

// TestAnswersInTexts: Cline answers calls in texts, with the file as its editor saved it.
func TestAnswersInTexts(t *testing.T) {
	messages := coretest.Conversation(
		coretest.User(core.Text("Go on.")),
		coretest.Assistant(core.ToolCall{ID: "a", Name: "write_to_file", Args: `{"path":"a.cs","content":"class A{}"}`}),
		coretest.User(core.Text("[write_to_file for 'a.cs'] Result:\nThe content was successfully saved to a.cs.\n\n<final_file_content path=\"a.cs\">\nclass A\n{\n}\n\n</final_file_content>")),
		coretest.Assistant(core.ToolCall{ID: "b", Name: "read_file", Args: `{"path":"b.cs"}`}),
		coretest.User(core.Text("[read_file for 'b.cs'] Result:\nclass B {}")))
	l := new(ledger.Ledger)
	l.Replay(messages, dialog.Read(messages), 0, len(messages))
	if got := shown(l.File("a.cs")) + shown(l.File("b.cs")); got != "@1\nclass A\n{\n}\n@1\nclass B {}\n" {
		t.Errorf("%q", got)
	}
}
