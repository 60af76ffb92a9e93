package core

import "hash/maphash"

// finder returns a function that finds messages by ID; -1 if there is none. As long as
// it is asked for them in their order, which is the rule, it only walks along. For a few
// that are not ahead it looks through all; it builds an index for more.
func finder(messages []Message) func(id string) int {
	next, detours := 0, 0
	var index map[string]int
	return func(id string) int {
		if id == "" {
			return -1
		}
		if index == nil {
			for j := next; j < len(messages); j++ {
				if messages[j].ID == id {
					next = j + 1
					return j
				}
			}
			if detours++; detours <= maxDetours {
				for j := range messages[:next] {
					if messages[j].ID == id {
						return j
					}
				}
				return -1
			}
			index = make(map[string]int, len(messages))
			for j := range messages {
				index[messages[j].ID] = j
			}
		}
		if j, ok := index[id]; ok {
			return j
		}
		return -1
	}
}

// maxDetours is how often to look through all messages costs no more than an index.
const maxDetours = 8

// An idSet holds IDs of messages. It is a table of their indices by hash, which for long
// conversations takes a third of the time and memory of a map.
type idSet struct {
	messages []Message
	seed     maphash.Seed
	slots    []int32 // indices, plus one; empty ones are 0
}

// newIDSet returns a set that has room for all the messages and holds none.
func newIDSet(messages []Message) *idSet {
	size := 16
	for size < 2*len(messages) {
		size *= 2
	}
	return &idSet{messages, maphash.MakeSeed(), make([]int32, size)}
}

// add adds the ID of message i; false if it was there.
func (s *idSet) add(i int) bool {
	id := s.messages[i].ID
	mask := uint64(len(s.slots) - 1)
	for at := maphash.String(s.seed, id) & mask; ; at = (at + 1) & mask {
		switch j := s.slots[at]; {
		case j == 0:
			s.slots[at] = int32(i + 1)
			return true
		case s.messages[j-1].ID == id:
			return false
		}
	}
}
