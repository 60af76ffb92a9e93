package supervise

// Recycle makes the next call start a new process.
func (p *Process) Recycle() { p.recycle() }
