package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// One tenant with a hundred requests does not keep another one waiting, and among several each is served in turn.
func TestAHerdOfOneTenantDoesNotStopAnother(t *testing.T) {
	q := New(2)
	held := map[string][]func(){}
	enter := func(tenant string) bool {
		leave, ok := q.Try(tenant, 1)
		if ok {
			held[tenant] = append(held[tenant], leave)
		}
		return ok
	}
	first, second, third := enter("herd"), enter("herd"), enter("herd")
	if !first || !second || third {
		t.Fatal("want capacity for two of one tenant")
	}
	if first, second := enter("bystander"), enter("bystander"); !first || second {
		t.Fatal("want capacity for one of another tenant, and no more")
	}
	order := make(chan string, 10)
	begin := func(tenant string) {
		p := q.join(tenant, 1)
		go func() {
			select {
			case <-p.ready:
				order <- tenant
			case <-t.Context().Done(): // the test is over
			}
		}()
	}
	for range 3 {
		begin("herd")
	}
	begin("bystander")
	begin("third") // has nothing under way
	if got := <-order; got != "third" {
		t.Fatalf("%s began, want the tenant with nothing under way", got)
	}
	for range 2 {
		held["herd"][0]()
		held["herd"][0]() // a second call does nothing
		held["herd"] = held["herd"][1:]
	}
	held["bystander"][0]()
	if got := <-order; got != "bystander" && got != "herd" {
		t.Fatal(got)
	}
	if w, _ := q.Waiting(); w == 0 {
		t.Error("all began, above the capacity")
	}
}

// A caller that hangs up leaves the queue, and what waited after it goes on.
func TestACallerThatHangsUpLeavesTheQueue(t *testing.T) {
	q := New(10)
	first, err := q.Enter(t.Context(), "a", 6)
	if err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	large := make(chan error)
	go func() {
		_, err := q.Enter(ctx, "a", 6)
		large <- err
	}()
	for w := 0; w == 0; w, _ = q.Waiting() {
		time.Sleep(time.Millisecond) // until it waits
	}
	small := q.join("a", 3)
	select {
	case <-small.ready:
		t.Error("the order of a tenant's requests was not kept")
	default:
	}
	hangUp()
	if err := <-large; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-small.ready
	first()
	q.done("a", 3)
	if len(q.lines) > 0 || q.used != 0 {
		t.Errorf("left: %v, %d", q.lines, q.used)
	}
	if _, err := q.Enter(ctx, "a", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that is gone: %v", err)
	}
}

// Whatever comes and goes: the capacity is kept, no tenant waits with nothing under way while half of what may be used is free, and all that
// entered can leave.
func TestQueueProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := New(rapid.Int64Range(1, 20).Draw(t, "capacity"))
		type piece struct {
			tenant string
			*place
		}
		var all []piece
		began := func(p piece) bool {
			select {
			case <-p.ready:
				return true
			default:
				return false
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				if p := all[i]; began(p) {
					q.done(p.tenant, p.weight)
				} else if !q.quit(p.tenant, p.place) {
					t.Fatal("it waits and cannot leave")
				}
				all = append(all[:i], all[i+1:]...)
			} else {
				tenant := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant")
				all = append(all, piece{tenant, q.join(tenant, rapid.Int64Range(0, 30).Draw(t, "weight"))})
			}
			var used, due int64
			of, waits := map[string]int64{}, 0
			for _, p := range all {
				if began(p) {
					used += p.weight
					of[p.tenant] += p.weight
				} else {
					waits++
					due += p.weight
				}
			}
			for _, p := range all {
				if !began(p) && of[p.tenant] == 0 && used+q.capacity <= 2*q.capacity {
					t.Fatalf("%s waits with nothing under way; %d of %d in use", p.tenant, used, q.capacity)
				}
			}
			if w, n := q.Waiting(); used > 2*q.capacity || used != q.used || w != waits || n != len(all)-waits {
				t.Fatalf("%d in use, capacity %d, counted %d; %d and %d wait", used, q.capacity, q.used, w, waits)
			}
			if got, want := q.Share(time.Hour, 3), min(time.Hour, time.Hour*time.Duration(q.capacity)/time.Duration(used+due+3)); got != want {
				t.Fatalf("a share of %s, want %s", got, want)
			}
		}
	})
}
