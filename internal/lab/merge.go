package lab

import (
	"errors"
	"fmt"
	"reflect"
)

// Merge returns the report on all sessions of reports, which are those of shards: the same
// as that of one run over all, byte for byte, but for the times. It is an error if they do
// not belong together, if a shard is missing or appears twice, or if one is partial.
func Merge(reports ...*Report) (*Report, error) {
	if len(reports) == 0 {
		return nil, errors.New("merge: no reports")
	}
	first := reports[0]
	out := &Report{Format: first.Format, Seed: first.Seed, Encoding: first.Encoding, Strategies: first.Strategies, Budgets: first.Budgets}
	have := map[int]bool{}
	for i, r := range reports {
		switch {
		case r.Shard == nil && len(reports) > 1:
			return nil, fmt.Errorf("merge: report %d is no shard", i+1)
		case r.Partial:
			return nil, fmt.Errorf("merge: report %d is not finished: run its shard again", i+1)
		case r.Format != first.Format || r.Seed != first.Seed || r.Encoding != first.Encoding:
			return nil, fmt.Errorf("merge: report %d was made with another format, seed or encoding than the first", i+1)
		case !reflect.DeepEqual(r.Strategies, first.Strategies):
			return nil, fmt.Errorf("merge: report %d has other strategies than the first", i+1)
		case !reflect.DeepEqual(r.Budgets, first.Budgets):
			return nil, fmt.Errorf("merge: report %d has other budgets than the first", i+1)
		}
		if r.Shard != nil {
			switch {
			case r.Shard.Count != first.Shard.Count:
				return nil, fmt.Errorf("merge: report %d is shard %s, the first is %s", i+1, r.Shard, first.Shard)
			case have[r.Shard.Index]:
				return nil, fmt.Errorf("merge: shard %s appears twice", r.Shard)
			}
			have[r.Shard.Index] = true
		}
		out.Sessions = append(out.Sessions, r.Sessions...)
		out.Skipped = append(out.Skipped, r.Skipped...)
		out.Rows = append(out.Rows, r.Rows...)
		out.Rounds = append(out.Rounds, r.Rounds...)
	}
	if first.Shard != nil {
		for i := 1; i <= first.Shard.Count; i++ {
			if !have[i] {
				return nil, fmt.Errorf("merge: shard %s is missing", Shard{i, first.Shard.Count})
			}
		}
	}
	names := map[string]bool{}
	for i := range out.Sessions {
		if names[out.Sessions[i].Name] {
			return nil, fmt.Errorf("merge: session %s appears in two shards", out.Sessions[i].Name)
		}
		names[out.Sessions[i].Name] = true
	}
	out.conclude()
	return out, nil
}
