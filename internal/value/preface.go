package value

import (
	"context"

	"github.com/condensehq/condense/internal/value/parallel"
)

// A preface is the part of an extract before its first quote: the table of contents of hidden messages, the open work, and the
// newest text of files.
type preface struct {
	r      *reading
	all    []unit // all units of a table of contents
	listed []unit // of these, the hidden ones
	// listRoom is what the table of listed may have, in tokens, and key is in its first line.
	listRoom int
	key      uint32
	left     string     // the list of files, without recall
	open     string     // the open work among them
	opened   []int      // lines with the same content
	made     []creation // identifiers that calls started or created
	files    []string   // blocks of files, see listFiles
	filed    []int      // lines with the same content
	out      []bool     // lines that are excluded from the choice because files has them
	root     string     // the folder of the files that the conversation shows, once it is used; see rootOf
}

// prepare rates r, and concurrently makes everything that does not depend on the values.
func prepare(ctx context.Context, r *reading) (v *rating, pre *preface, err error) {
	pre = &preface{r: r, made: r.created(), out: make([]bool, len(r.c.Lines))}
	tasks := []func(){func() { v, err = rate(ctx, r) }}
	if r.o.Only == nil && r.o.Shares.Index > 0 && !r.o.NoHandles {
		tasks = append(tasks, func() { pre.all, pre.key = r.units(), r.contentKey() })
	}
	parallel.Do(tasks...)
	return v, pre, err
}
