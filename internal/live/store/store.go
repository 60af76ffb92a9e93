// Package store keeps the gateway's state across restarts: the state of each lineage, and the originals that its
// stubs point to. A [Store] does not interpret this data.
//
// [Memory] is for tests and for programs that need no restart; [SQLite] is one file; [Postgres] is for several
// gateways. All must pass the tests of testEvery.
package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// ErrConflict means that another process or goroutine saved the record since it was loaded. Load it again and decide
// on the new state.
var ErrConflict = errors.New("the record was changed by another writer")

// ErrFull means that originals were not kept because of the limit of their size.
var ErrFull = errors.New("the limit of kept originals is reached")

// ErrUnavailable means that the database does not answer. The data may or may not have been saved.
var ErrUnavailable = errors.New("the database does not answer")

// ErrFile means that the file of the store could not be read or written: the disk is full, or the file is damaged or
// locked. Nothing was saved.
var ErrFile = errors.New("the file cannot be used")

// Open opens the store at an address: of a PostgreSQL database, or the path of a file.
func Open(ctx context.Context, address string) (Store, error) {
	if IsPostgres(address) {
		return Postgres(ctx, address)
	}
	return SQLite(ctx, address)
}

// A Store keeps records and originals. Implementations are safe for concurrent use, also by several processes if the
// store is a file or a server.
//
// Errors name the store and the remedy, and contain nothing of a record's data.
type Store interface { //nolint:interfacebloat // a store without one of these would not do
	// Load returns the records of a key, the latest saved first. The caller owns Data. A record that is corrupted is
	// [Record.Damaged]; so in Since and List.
	Load(ctx context.Context, k Key) ([]Record, error)
	// Save stores r and increments r.Version. Once it has returned nil, the record survives a crash of the process
	// and, if the disk flushes as promised, of the machine. A record that was never saved has version 0. The error
	// wraps [ErrConflict] if the stored version differs from r.Version, or the version of r.From from r.From.Version.
	// R is unchanged after any error.
	Save(ctx context.Context, r *Record) error
	// Keep is Save, and in the same transaction adds the originals of k to the set r.Set, which must not be empty.
	// Equal originals of a tenant are stored once. The error wraps [ErrFull] if all originals would exceed maxBytes,
	// compressed; then nothing has changed. 0 means no limit.
	Keep(ctx context.Context, r *Record, k *Kept, maxBytes int64) error
	// Kept returns the originals of a tenant's set in the order in which they were added, without damaged ones; nil
	// if there are none.
	Kept(ctx context.Context, tenant, set string) ([]Original, error)
	// KeptCount returns how many originals a set of a tenant has. Sets only grow until they are deleted.
	KeptCount(ctx context.Context, tenant, set string) (int, error)
	// KeptBytes returns the size of all originals, compressed.
	KeptBytes(ctx context.Context) (int64, error)
	// Readable returns the records, without their data, that have originals and whose Reader is reader, which must
	// not be empty; the latest saved first, at most limit. Session and handle select records if they are not empty.
	Readable(ctx context.Context, reader, session, handle string, limit int) ([]Record, error)
	// List returns the records of a tenant, or all if it is empty, without their data; the latest saved first. A
	// tenant with a name has several keys, NAME:HASH; the name alone means all of them.
	List(ctx context.Context, tenant string) ([]Record, error)
	// Since returns the records of an API, of all tenants, that were saved at a time or later, the latest saved
	// first, at most limit.
	Since(ctx context.Context, api string, since time.Time, limit int) ([]Record, error)
	// Changes returns a number that differs from the last call's if another user may have saved or deleted a record
	// of the key since. Changes through this Store may or may not count.
	Changes(ctx context.Context, k Key) (int64, error)
	// Ready reports why data saved now would not survive a restart, or nil: the database is unavailable, the file was
	// deleted.
	Ready(ctx context.Context) error
	// Secret returns 32 random bytes, which are created on first use of the name and from then on are the same for
	// all users of the store.
	Secret(ctx context.Context, name string) ([]byte, error)
	// Expire deletes the records last saved before a time, and then the oldest until at most
	// maxBytes of data are left; 0 means no limit. It returns how many it deleted. Originals that
	// no record needs any more are deleted too.
	Expire(ctx context.Context, before time.Time, maxBytes int64) (int, error)
	// Forget deletes the records of a tenant, selected as in List, and their originals, and returns the number of
	// deleted records. It can delete some and return an error: a file may contain deleted data until it is
	// overwritten.
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

	Reader string // keyed hash of the permitted readers of its originals; empty: none
	Set    string // the originals that the record needs; records can share a set. Empty for none

	// Damaged marks a corrupted record, of which only ID and Key are valid. No record can have this ID until it has
	// expired. A [Store] sets Damaged; it is not stored.
	Damaged bool

	// From, if not nil, is another record of the key on which this one is based, as the caller read it: of several
	// writers that read the same version, one wins. Its version is incremented with this record's. It is not stored.
	From *Record
}

// isOf reports whether a key's tenant is one, or of one with that name.
func isOf(tenant, name string) bool { return tenant == name || strings.HasPrefix(tenant, name+":") }

// saved increments the versions after a successful save.
func (r *Record) saved(err error) {
	if err != nil {
		return
	}
	r.Version++
	if r.From != nil {
		r.From.Version++
	}
}

// Kept are the originals to add to a set.
type Kept struct {
	Originals []Original
	Handles   []string // by which the set can be found
}

// An Original is content that something stored elsewhere points to.
type Original struct {
	Kind string // the caller's
	Data []byte
}

// A Key identifies the owner of a record. Empty fields are allowed.
type Key struct {
	Tenant  string // a keyed hash of the credentials
	API     string
	Agent   string // the ID of a sub-agent
	Session string // as the client names it
}

// maxID is the length of the longest identifier in bytes. Clients choose some of them.
const maxID = 256

// Validate reports a field that is too long or has other characters than letters, digits and -._:/@+=. Clients choose
// IDs, which can reach logs, paths and queries.
func (k Key) Validate() error {
	for _, f := range []struct{ name, value string }{{"tenant", k.Tenant}, {"api", k.API}, {"agent", k.Agent}, {"session", k.Session}} {
		if !ValidID(f.value) {
			return fmt.Errorf("key: %s: an ID has at most %d letters, digits and -._:/@+=", f.name, maxID)
		}
	}
	return nil
}

// ValidID reports whether s can be a field of a [Key].
func ValidID(s string) bool {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/@+="
	return len(s) <= maxID && strings.Trim(s, all) == ""
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

// readable refuses the empty reader, because records without a reader have it.
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
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	})
)

// maxUnpacked is the size of the largest original in bytes: damaged ones can claim any.
const maxUnpacked = 1 << 30

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

// NewOwn returns a new record that only this gateway writes.
func NewOwn(k Key) *Record { return &Record{ID: k.Tenant + "-" + strings.ToLower(rand.Text()), Key: k} }

// SaveOwn saves a record that only this gateway writes, whatever happened to the stored one: it may have been deleted
// as old, or been stored although the database went away before it confirmed that.
func SaveOwn(ctx context.Context, in Store, r *Record) error {
	err := in.Save(ctx, r)
	if !errors.Is(err, ErrConflict) {
		return err
	}
	all, err := in.Load(ctx, r.Key)
	if err != nil {
		return err
	}
	r.Version = 0
	for i := range all {
		if all[i].ID == r.ID {
			r.Version = all[i].Version
		}
	}
	return in.Save(ctx, r)
}

// sumBytes is the length of each checksum: half of a SHA-256, which no damage repeats by chance.
const sumBytes = 16

// checksum returns two halves: a checksum of the record's data, and one of all other fields including the first half.
// Listings, which do not read the data, check the second. The version is in neither, because another record's save
// can increment it.
func checksum(r *Record) []byte {
	data := sha256.Sum256(r.Data)
	return append(data[:sumBytes:sumBytes], headSum(r, data[:sumBytes])...)
}

// headSum is the second half of a checksum.
func headSum(r *Record, data []byte) []byte {
	k, updated := r.Key, strconv.FormatInt(r.Updated.UnixMilli(), 10)
	return sumOf(r.ID, k.Tenant, k.API, k.Agent, k.Session, r.Reader, r.Set, updated, string(data))
}

// keptSum is the checksum of the row by which an original is the n-th of a set.
func keptSum(tenant, set string, n int64, kind string, hash []byte) []byte {
	return sumOf(tenant, set, strconv.FormatInt(n, 10), kind, string(hash))
}

// sumOf returns the checksum of fields. Each field is prefixed with its length, so that moving text between fields
// changes the sum.
func sumOf(fields ...string) []byte {
	h := sha256.New()
	for _, f := range fields {
		h.Write([]byte(strconv.Itoa(len(f)) + ":" + f))
	}
	return h.Sum(nil)[:sumBytes]
}

// check compares a record that was read with its checksum. Of a damaged one only the ID and the key are left.
func (r *Record) check(sum []byte) {
	if !bytes.Equal(sum, checksum(r)) {
		r.damaged()
	}
}

// checkHead is check for a record that was read without its data.
func (r *Record) checkHead(sum []byte) {
	if len(sum) != 2*sumBytes || !bytes.Equal(sum[sumBytes:], headSum(r, sum[:sumBytes])) {
		r.damaged()
	}
}

func (r *Record) damaged() { r.Damaged, r.Data, r.Reader, r.Set = true, nil, "", "" }

// isOriginal reports whether data is the original to which the n-th row of a set refers.
func isOriginal(o *Original, tenant, set string, n int64, hash, sum []byte) bool {
	got := sha256.Sum256(o.Data)
	return bytes.Equal(got[:], hash) && bytes.Equal(sum, keptSum(tenant, set, n, o.Kind, hash))
}
