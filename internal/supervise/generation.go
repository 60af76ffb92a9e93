package supervise

import (
	"fmt"
	"io/fs"
	"os"
)

// A generation is a plugin with one Spec. [Process.Replace] begins the next.
type generation struct {
	spec    Spec
	slots   chan struct{} // one for every call that runs
	breaker *breaker
	retired chan struct{} // closed when the next one has begun

	// Guarded by the lock of the Process.
	restarts restarts
	prog     *program // nil until the first start, and after an idle stop
	current  *instance
	starting *starting
	seen     fs.FileInfo // of Path when it was last looked at, if it is not pinned
}

// changed reports whether the program is another one than when it was last asked. Nobody
// asks for a pinned one: what was approved keeps running, whatever happens to the file.
func (g *generation) changed() bool {
	if g.spec.SHA256 != "" || g.spec.Attach != nil {
		return false
	}
	info, err := os.Stat(g.spec.Path)
	if err != nil {
		return false // it is about to be replaced
	}
	was := g.seen
	g.seen = info
	return was != nil && (!os.SameFile(info, was) || info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()))
}

// A starting is a start that calls wait for.
type starting struct {
	done chan struct{}
	err  error // set before done is closed
}

func (p *Process) newGeneration(s Spec) (*generation, error) {
	fail := func(err error) (*generation, error) { return nil, fmt.Errorf("plugin %s: %w", s.Name, err) }
	if err := s.validate(); err != nil {
		return fail(err)
	}
	if s.Attach == nil {
		f, err := openProgram(s.Path)
		if err != nil {
			return fail(err)
		}
		_ = f.Close()
	}
	g := &generation{spec: s.clone(), retired: make(chan struct{}), restarts: restarts{rule: p.opts.Restart}}
	g.slots = make(chan struct{}, g.spec.Limits.Calls)
	// Calls that failed may have left anything behind: the trial gets a new process.
	g.breaker = newBreaker(s.Name, p.opts.Breaker, func() { p.recycle(g) })
	return g, nil
}
