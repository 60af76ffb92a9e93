package store_test

import (
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
)

// What a gateway alone writes is saved again after it was deleted as old, and after a database went away before it said that it had
// saved it.
func TestOwnRecordsAreSavedAgain(t *testing.T) {
	in, key := memory(t), store.Key{Tenant: "usage"}
	ctx := t.Context()
	r := store.NewOwn(key)
	for _, between := range []func() error{
		func() error { return nil },
		func() error { _, err := in.Expire(ctx, time.Now().Add(time.Hour), 0); return err },
		func() error { unheard := *r; return in.Save(ctx, &unheard) },
	} {
		if err := between(); err != nil {
			t.Fatal(err)
		}
		r.Data = append(r.Data, 'x')
		if err := store.SaveOwn(ctx, in, r); err != nil {
			t.Fatal(err)
		}
		if all, err := in.Load(ctx, key); err != nil || len(all) != 1 || string(all[0].Data) != string(r.Data) {
			t.Errorf("%v %v", all, err)
		}
	}
}
