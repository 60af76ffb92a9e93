package need

import "math/bits"

// A table numbers hashes in the order in which they come. It is twice as fast as a map,
// which hashes what is a hash already.
type table struct {
	slots []slot
	keys  []uint64
	shift int // the highest bits of a product are the slot
}

type slot struct {
	key    uint64
	number int32 // plus one; 0 if the slot is empty
}

func newTable(capacity int) table {
	t := table{}
	t.grow(max(1024, capacity))
	t.keys = make([]uint64, 0, capacity/2)
	return t
}

// grow makes room for n slots at least, and puts the keys in place.
func (t *table) grow(n int) {
	log := bits.Len(uint(n - 1))
	t.slots, t.shift = make([]slot, 1<<log), 64-log
	for i, key := range t.keys {
		*t.slot(key) = slot{key, int32(i + 1)}
	}
}

func (t *table) slot(h uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := h * 0x9E3779B97F4A7C15 >> t.shift; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.number == 0 || s.key == h {
			return s
		}
	}
}

// find returns the number of h; -1 if it has none.
func (t *table) find(h uint64) int32 { return t.slot(h).number - 1 }

// number returns the number of h and whether it is new.
func (t *table) number(h uint64) (n int32, isNew bool) {
	s := t.slot(h)
	if s.number > 0 {
		return s.number - 1, false
	}
	t.keys = append(t.keys, h)
	n = int32(len(t.keys))
	*s = slot{h, n}
	if 2*len(t.keys) > len(t.slots) {
		t.grow(2 * len(t.slots))
	}
	return n - 1, true
}
