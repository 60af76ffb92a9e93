package ledger

import ("testing";"os";"path/filepath";"time";"fmt"
"github.com/condensehq/condense/transcript")

func TestAcc(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("TR")+"/*.gz")
	e, f, n := 0, 0, 0
	var took time.Duration
	for _, name := range files {
		fh, _ := os.Open(name)
		d, err := transcript.Read(fh, nil)
		if err != nil { continue }
		ms := d.Journal.View()
		n += len(ms)
		start := time.Now()
		var l Ledger
		l.Replay(ms)
		took += time.Since(start)
		a, b := 0, 0
		for _, x := range l.Files { a += x.Edits; b += x.Found }
		if a > b+3 { fmt.Println(filepath.Base(name), a, b) }
		e += a; f += b
	}
	fmt.Println(e, f, n, took)
}
