package value

import (
	"math/bits"
	"runtime"
)

// A table numbers hashes in the order in which they come. It is twice as fast as a map, which would hash the hashes
// again.
type table struct {
	slots []slot
	keys  []uint64
	shift uint // the highest bits of a product are the slot
}

type slot struct {
	tag    uint32 // some bits of the key, to avoid most comparisons with other keys
	number int32  // plus one; 0 if the slot is empty
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
	t.slots, t.shift = make([]slot, 1<<log), uint(64-log)
	for i, key := range t.keys {
		*t.slot(key) = slot{uint32(key), int32(i + 1)}
	}
}

func (t *table) slot(h uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := t.home(h); ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.number == 0 || s.tag == uint32(h) && t.keys[s.number-1] == h {
			return s
		}
	}
}

// find returns the number of h; -1 if it has none.
func (t *table) find(h uint64) int32 { return t.slot(h).number - 1 }

// number returns the number of h, a new one if it had none.
func (t *table) number(h uint64) int32 {
	s := t.slot(h)
	if s.number > 0 {
		return s.number - 1
	}
	t.keys = append(t.keys, h)
	n := int32(len(t.keys))
	*s = slot{uint32(h), n}
	if 2*len(t.keys) > len(t.slots) {
		t.grow(2 * len(t.slots))
	}
	return n - 1
}

// numbers adds the numbers of list to out. The processor can fetch many slots concurrently if no decision depends on
// them, so slots are read twice, and so are the keys, which most slots have.
func (t *table) numbers(list []found, out []int32) []int32 {
	start := len(out)
	for i := range list {
		out = append(out, t.slots[t.home(list[i].hash)].number)
	}
	read := uint64(0)
	for _, n := range out[start:] {
		if n > 0 {
			read |= t.keys[n-1]
		}
	}
	runtime.KeepAlive(read)
	out = out[:start]
	for i := range list {
		out = append(out, t.number(list[i].hash))
	}
	return out
}

// home is the preferred slot of h.
func (t *table) home(h uint64) uint64 { return h * 0x9E3779B97F4A7C15 >> (t.shift & 63) }
