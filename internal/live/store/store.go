// Package store keeps what the gateway must remember after its process has ended: the state
// of each lineage. A [Store] knows nothing of what it keeps.
//
// [Memory] is for tests and for programs that need no restart; [SQLite] is one file. Package
// storetest has the tests that every implementation must pass.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrConflict means that a record was saved by another process or goroutine since it was
// loaded. Load it again and decide with what is there.
var ErrConflict = errors.New("the record was changed by another writer")

// A Store keeps records. Implementations are safe for concurrent use, by several processes
// too if the store is a file or a server.
//
// Errors name the store and what to do, and hold nothing of a record's data.
type Store interface { //nolint:interfacebloat // a store without one of these would not do
	// Load returns the records of a key, the latest saved first. Data is the caller's.
	Load(ctx context.Context, k Key) ([]Record, error)
	// Save stores r and increments r.Version. When it returns nil, the record survives a
	// crash of the process and, if the disk keeps its word, of the machine. A record that was
	// never saved has version 0. The error wraps [ErrConflict] if the stored version is
	// another than r.Version; r is unchanged after any error.
	Save(ctx context.Context, r *Record) error
	// Changes returns a number that is another one when another user may have saved or deleted something since the
	// last call. What was saved through this Store does not count.
	Changes(ctx context.Context) (int64, error)
	// Secret returns 32 random bytes that are made when the name is first asked for, and are
	// the same from then on for everyone who uses the store.
	Secret(ctx context.Context, name string) ([]byte, error)
	// Expire deletes the records last saved before a time, and then the oldest until at most
	// maxBytes of data are left; 0 means no limit. It returns how many it deleted.
	Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error)
	// Close releases the store. No other method may be called afterwards.
	Close() error
}

// A Record is the state of one lineage.
type Record struct {
	ID      string
	Key     Key
	Version int64     // how often it was saved
	Updated time.Time // when it was saved last, as its writer says, in milliseconds
	Data    []byte
}

// A Key says whose conversation a record belongs to. Empty fields are allowed.
type Key struct {
	Tenant  string // a keyed hash of the credentials
	API     string
	Agent   string // the ID of a sub-agent
	Session string // as the client names it
}

// maxID is the length of the longest identifier in bytes. Clients choose some of them.
const maxID = 256

// Validate reports a field that is too long or holds other characters than letters, digits
// and -._:/@+=. What clients send as an ID can reach logs, paths and queries.
func (k Key) Validate() error {
	for _, f := range []struct{ name, value string }{
		{"tenant", k.Tenant}, {"api", k.API}, {"agent", k.Agent}, {"session", k.Session},
	} {
		if !ValidID(f.value) {
			return fmt.Errorf("key: %s: an ID has at most %d letters, digits and -._:/@+=", f.name, maxID)
		}
	}
	return nil
}

// ValidID reports whether s can be a field of a [Key].
func ValidID(s string) bool {
	if len(s) > maxID {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == ':', c == '/', c == '@', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}

func (r *Record) validate() error {
	if r.ID == "" || !ValidID(r.ID) {
		return fmt.Errorf("record: the ID is empty, or no ID of at most %d letters, digits and -._:/@+=", maxID)
	}
	return r.Key.Validate()
}

// secretBytes is the length of a secret: the key of an HMAC with SHA-256.
const secretBytes = 32
