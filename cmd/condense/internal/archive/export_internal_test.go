package archive

// SetShard sets the number of IDs in a shard.
func (a *Archive) SetShard(ids int64) { a.perShard = ids }
