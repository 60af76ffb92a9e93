package store

import (
	"bytes"
	"crypto/sha256"
	"strconv"
)

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
