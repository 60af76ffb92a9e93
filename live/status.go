package live

// Stats returns a snapshot of the statistics.
func (g *Gateway) Stats() Stats {
	s := g.stats.snapshot()
	s.AsOf, s.Observe, s.Windows = g.current.Load().Now(), g.current.Load().Observe, g.windows.known()
	if pending := g.host.ReloadErr(); pending != nil {
		s.Pending = pending.Error()
	}
	return s
}
