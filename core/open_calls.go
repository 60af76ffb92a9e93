package core

import "iter"

// openCalls are the tool calls of a conversation, read from its beginning, that no result
// has answered yet. It is the one place that says which call a result answers: the oldest
// before it of its ID that is still open. The zero value has none.
//
// Nearly always a call is answered before many others are made. So a few are kept in a
// list, which is searched in less time than a hash takes; only where more are open at one
// time is there a map.
type openCalls struct {
	few  []openCall // oldest first; unused once there is a map
	many map[string]queue
	more []openCall // those of the queues
}

type openCall struct {
	id   string
	key  int // of the caller's choice
	next int // in a queue: where the next of this ID stands
}

// A queue says where the oldest and the newest call of an ID stand.
type queue struct{ first, last int }

// maxFew is how many calls are searched one by one.
const maxFew = 16

// call adds a call.
func (o *openCalls) call(id string, key int) {
	if o.many != nil {
		o.enqueue(id, key)
		return
	}
	if len(o.few) < maxFew {
		o.few = append(o.few, openCall{id: id, key: key})
		return
	}
	o.many = make(map[string]queue, 2*maxFew)
	for _, c := range o.few {
		o.enqueue(c.id, c.key)
	}
	o.enqueue(id, key)
}

func (o *openCalls) enqueue(id string, key int) {
	at := len(o.more)
	o.more = append(o.more, openCall{id: id, key: key})
	q, ok := o.many[id]
	if ok {
		o.more[q.last].next = at
	} else {
		q.first = at
	}
	q.last = at
	o.many[id] = q
}

// result takes the call that a result answers away and returns its key; false if none is
// open.
func (o *openCalls) result(id string) (key int, ok bool) {
	if o.many == nil {
		for i := range o.few {
			if o.few[i].id == id {
				key = o.few[i].key
				o.few = append(o.few[:i], o.few[i+1:]...)
				return key, true
			}
		}
		return 0, false
	}
	q, ok := o.many[id]
	if !ok {
		return 0, false
	}
	c := &o.more[q.first]
	if q.first == q.last {
		delete(o.many, id)
	} else {
		o.many[id] = queue{c.next, q.last}
	}
	return c.key, true
}

// keys returns the keys of the calls that are open, in no order.
func (o *openCalls) keys() iter.Seq[int] {
	return func(yield func(int) bool) {
		if o.many == nil {
			for i := range o.few {
				if !yield(o.few[i].key) {
					return
				}
			}
			return
		}
		for _, q := range o.many {
			for at := q.first; ; at = o.more[at].next {
				if !yield(o.more[at].key) {
					return
				}
				if at == q.last {
					break
				}
			}
		}
	}
}
