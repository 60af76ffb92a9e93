package need

// A table numbers hashes in the order in which they come.
type table struct {
	slots []int32 // number plus one, 0 if empty
	keys  []uint64
}

func newTable(capacity int) table {
	n := 1024
	for n < capacity {
		n *= 2
	}
	return table{slots: make([]int32, n), keys: make([]uint64, 0, n/2)}
}

func (t *table) slot(h uint64) uint64 {
	mask := uint64(len(t.slots) - 1)
	for i := (h * 0x9E3779B97F4A7C15) >> 20 & mask; ; i = (i + 1) & mask {
		if n := t.slots[i]; n == 0 || t.keys[n-1] == h {
			return i
		}
	}
}

// find returns the number of h; -1 if it has none.
func (t *table) find(h uint64) int32 { return t.slots[t.slot(h)] - 1 }

// number returns the number of h and whether it is new.
func (t *table) number(h uint64) (n int32, isNew bool) {
	i := t.slot(h)
	if n := t.slots[i]; n > 0 {
		return n - 1, false
	}
	t.keys = append(t.keys, h)
	t.slots[i] = int32(len(t.keys)) //nolint:gosec // a conversation has fewer than 2^31 words
	if 2*len(t.keys) > len(t.slots) {
		t.slots = make([]int32, 2*len(t.slots))
		for k, key := range t.keys {
			t.slots[t.slot(key)] = int32(k + 1) //nolint:gosec // the same
		}
	}
	return int32(len(t.keys) - 1), true //nolint:gosec // the same
}
