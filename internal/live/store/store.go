// Package store keeps what the gateway must remember after its process has ended: the state
// of each lineage, and the originals that its stubs point to. A [Store] knows nothing of what it keeps.
//
// [Memory] is for tests and for programs that need no restart; [SQLite] is one file; [Postgres] is for several gateways. Package
// storetest has the tests that every implementation must pass.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ErrConflict means that a record was saved by another process or goroutine since it was
// loaded. Load it again and decide with what is there.
var ErrConflict = errors.New("the record was changed by another writer")

// ErrFull means that originals were not kept because of the limit of their size.
var ErrFull = errors.New("the limit of kept originals is reached")

// ErrAway means that the database does not answer now. What was to be saved may have been saved or not.
var ErrAway = errors.New("the database does not answer")

// ErrFile means that the file of the store could not be read or written: the disk is full, or the file is damaged or locked. What was
// to be saved was not saved.
var ErrFile = errors.New("the file cannot be used")

// Open opens the store at an address: that of a PostgreSQL database, or the path of a file.
func Open(ctx context.Context, address string) (Store, error) {
	if IsPostgres(address) {
		return Postgres(ctx, address)
	}
	return SQLite(ctx, address)
}

// A Store keeps records and originals. Implementations are safe for concurrent use, by several processes
// too if the store is a file or a server.
//
// Errors name the store and what to do, and hold nothing of a record's data.
type Store interface { //nolint:interfacebloat // a store without one of these would not do
	// Load returns the records of a key, the latest saved first. Data is the caller's. A record that is not what was saved is
	// [Record.Damaged]; so in Since and List.
	Load(ctx context.Context, k Key) ([]Record, error)
	// Save stores r and increments r.Version. When it returns nil, the record survives a
	// crash of the process and, if the disk keeps its word, of the machine. A record that was
	// never saved has version 0. The error wraps [ErrConflict] if the stored version is
	// another than r.Version, or that of r.From than r.From.Version; r is unchanged after any error.
	Save(ctx context.Context, r *Record) error
	// Keep is Save, and keeps originals with the record in the same step: those of k are added to the set r.Set, which
	// must not be empty. Equal originals of a tenant are kept once. The error wraps [ErrFull] if all originals
	// would have more than maxBytes, compressed; then nothing has changed. 0 means no limit.
	Keep(ctx context.Context, r *Record, k *Kept, maxBytes int64) error
	// Kept returns the originals of a set of a tenant in the order in which they were added, without damaged ones; nil if there are none.
	Kept(ctx context.Context, tenant, set string) ([]Original, error)
	// KeptCount returns how many originals a set of a tenant has. Sets only grow until they are deleted.
	KeptCount(ctx context.Context, tenant, set string) (int, error)
	// KeptBytes returns the size of all originals, compressed.
	KeptBytes(ctx context.Context) (int64, error)
	// Readable returns the records, without their data, that have originals and whose Reader is reader, which must not be
	// empty; the latest saved first, at most limit. A session or handle that is not empty must be theirs.
	Readable(ctx context.Context, reader, session, handle string, limit int) ([]Record, error)
	// List returns the records of a tenant, or all if it is empty, without their data; the latest saved first. A tenant with a name has
	// several keys, NAME:HASH; the name alone means all of them.
	List(ctx context.Context, tenant string) ([]Record, error)
	// Since returns the records of an API, of all tenants, that were saved at a time or later, the latest saved first, at most limit.
	Since(ctx context.Context, api string, since time.Time, limit int) ([]Record, error)
	// Changes returns a number that is another one when another user may have saved or deleted a record of the key since the
	// last call. What was saved through this Store may count or not.
	Changes(ctx context.Context, k Key) (int64, error)
	// Ready reports why what is saved now would not be there after a restart, or nil: the database is away, the file was deleted.
	Ready(ctx context.Context) error
	// Secret returns 32 random bytes that are made when the name is first asked for, and are
	// the same from then on for everyone who uses the store.
	Secret(ctx context.Context, name string) ([]byte, error)
	// Expire deletes the records last saved before a time, and then the oldest until at most
	// maxBytes of data are left; 0 means no limit. It returns how many it deleted. Originals that
	// no record needs any more are deleted too.
	Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error)
	// Forget deletes the records of a tenant, as in List, and what was kept for it, and returns how many records it deleted, which can be
	// some together with an error: a file may hold what was deleted until it is overwritten.
	Forget(ctx context.Context, tenant string) (int, error)
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

	Reader string // who may read its originals: a keyed hash; empty for no one
	Set    string // the originals that the record needs; records can share a set. Empty for none

	// Damaged says that what was read is not what was saved: there is nothing but ID and Key, and no record can have this ID until it
	// has expired. A [Store] sets it; it is not stored.
	Damaged bool

	// From, if not nil, is what the caller read of another record of the key, which this one goes on from: of several writers that
	// read the same, one wins. Its version is incremented with that of this record. It is not stored.
	From *Record
}

// isOf reports whether a key's tenant is one, or of one with that name.
func isOf(tenant, name string) bool { return tenant == name || strings.HasPrefix(tenant, name+":") }

// saved counts up the versions of what was saved.
func (r *Record) saved(err error) {
	if err != nil {
		return
	}
	r.Version++
	if r.From != nil {
		r.From.Version++
	}
}

// Kept is what is added to a set.
type Kept struct {
	Originals []Original
	Handles   []string // by which the set can be found
}

// An Original is content that something stored elsewhere points to.
type Original struct {
	Kind string // the caller's
	Data []byte
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
	if !ValidID(r.Reader) || !ValidID(r.Set) {
		return fmt.Errorf("record: reader and set have at most %d letters, digits and -._:/@+=", maxID)
	}
	return r.Key.Validate()
}

// validate reports why k cannot be kept with r.
func (k *Kept) validate(r *Record) error {
	if err := r.validate(); err != nil {
		return err
	}
	if r.Set == "" {
		return errors.New("record: originals need a set")
	}
	for _, h := range k.Handles {
		if h == "" || !ValidID(h) {
			return errors.New("record: a handle is empty, or no ID")
		}
	}
	return nil
}

// readable refuses the empty reader, which is that of records without one.
func readable(reader string) error {
	if reader == "" {
		return errors.New("originals: no reader")
	}
	return nil
}

// zstd is at its best with one encoder for the process: EncodeAll is safe for concurrent use.
var (
	packer   = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)) })
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostUnpacked))
	})
)

// mostUnpacked is the size of the largest original in bytes: damaged ones can claim any.
const mostUnpacked = 1 << 30

// A packed original, with the hash by which equal ones of a tenant are known.
type packed struct {
	hash [sha256.Size]byte
	kind string
	data []byte // compressed
}

func pack(originals []Original) ([]packed, error) {
	z, err := packer()
	if err != nil {
		return nil, err
	}
	all := make([]packed, len(originals))
	for i, o := range originals {
		all[i] = packed{sha256.Sum256(o.Data), o.Kind, bytes.Clone(z.EncodeAll(o.Data, nil))} // the encoder's array is as large as the text
	}
	return all, nil
}

func unpack(data []byte) ([]byte, error) {
	z, err := unpacker()
	if err != nil {
		return nil, err
	}
	return z.DecodeAll(data, nil)
}

// secretBytes is the length of a secret: the key of an HMAC with SHA-256.
const secretBytes = 32
