// Package access admits callers to a gateway: by tokens, whose hashes are in a file, and by the certificate of its
// address. Both are read again when their files change.
package access

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
)

// A Token lets a client in. The token itself is a random text that is shown once. Only its hash is kept, without salt
// and by a fast function, because the text cannot be guessed.
type Token struct {
	Tenant  string
	Hash    [sha256.Size]byte
	Admin   bool // for the gateway's own pages, and for nothing else
	Created time.Time
	Expires time.Time // zero for never
	Note    string    // letters, digits and -._:@+=
}

// ID identifies the token to people: the beginning of its hash.
func (t *Token) ID() string {
	const size = 4
	return hex.EncodeToString(t.Hash[:size])
}

// Expired reports whether the token is no longer valid.
func (t *Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// prefix begins every token, so that a token in a file or a log is recognized as one.
const prefix = "condense_"

// New returns a new token for t, and sets its hash. The text has 128 random bits or more.
func (t *Token) New() (text string) {
	text = prefix + rand.Text()
	t.Hash = sha256.Sum256([]byte(text))
	return text
}

var (
	tenantRule = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	noteRule   = plain.Pattern(`^[A-Za-z0-9._:@+=-]{1,64}$`)
)

// Reserved reports whether the store keeps its own records under a name, which no tenant can have.
func Reserved(name string) bool { return name == "stats" || name == "usage" }

// Check reports an invalid field of a token.
func (t *Token) Check() error {
	if !tenantRule().MatchString(t.Tenant) {
		return fmt.Errorf("tenant %q: use at most 64 letters, digits and ._-, with a letter or digit first", t.Tenant)
	}
	if Reserved(t.Tenant) {
		return fmt.Errorf("tenant %q: the store has something else of that name", t.Tenant)
	}
	if t.Note != "" && !noteRule().MatchString(t.Note) {
		return fmt.Errorf("note %q: use at most 64 letters, digits and ._:@+=-", t.Note)
	}
	return nil
}

// line is the token in a file.
func (t *Token) line() string {
	words := []string{t.Tenant, "sha256:" + hex.EncodeToString(t.Hash[:])}
	if t.Admin {
		words = append(words, "admin")
	}
	for _, at := range []struct {
		name string
		time time.Time
	}{{"created", t.Created}, {"expires", t.Expires}} {
		if !at.time.IsZero() {
			words = append(words, at.name+"="+at.time.UTC().Format(time.RFC3339))
		}
	}
	if t.Note != "" {
		words = append(words, "note="+t.Note)
	}
	return strings.Join(words, " ") + "\n"
}

// parseToken reads a line.
func parseToken(line string) (Token, error) {
	words := strings.Fields(line)
	if len(words) < 2 { //nolint:mnd // a tenant and a hash
		return Token{}, errors.New("want a tenant and sha256:HASH, as 'condense token new' writes them")
	}
	t := Token{Tenant: words[0]}
	digits, ok := strings.CutPrefix(words[1], "sha256:")
	hash, err := hex.DecodeString(digits)
	if !ok || err != nil || len(hash) != sha256.Size {
		return Token{}, errors.New("the second word is not sha256: and 64 hexadecimal digits; a token itself does not belong here")
	}
	copy(t.Hash[:], hash)
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "admin":
			t.Admin = true
		case "created":
			t.Created, err = time.Parse(time.RFC3339, value)
		case "expires":
			t.Expires, err = time.Parse(time.RFC3339, value)
		case "note":
			t.Note = value
		default:
			err = fmt.Errorf("unknown word %q; there are admin, created=, expires= and note=", word)
		}
		if err != nil {
			return Token{}, err
		}
	}
	return t, t.Check()
}

// ParseTokens reads a file of tokens. It ignores empty lines and lines that begin with #.
func ParseTokens(text []byte) ([]Token, error) {
	var all []Token
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		t, err := parseToken(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, t)
	}
	return all, lines.Err()
}

const head = "# Tokens of condense serve, one in a line; only their hashes. 'condense token' writes this file.\n"

// Add adds a token to a file, which is made if it does not exist.
func Add(path string, t *Token) error {
	return change(path, func(text []byte) ([]byte, error) {
		switch {
		case len(text) == 0:
			text = []byte(head)
		case text[len(text)-1] != '\n':
			text = append(text, '\n')
		}
		return append(text, t.line()...), nil
	})
}

// Remove removes the tokens with an ID, or all of a tenant, from a file and returns them.
func Remove(path, idOrTenant string) (removed []Token, err error) {
	err = change(path, func(text []byte) ([]byte, error) {
		var out []byte
		for line := range bytes.Lines(text) {
			t, err := parseToken(string(line))
			if err == nil && (t.ID() == idOrTenant || t.Tenant == idOrTenant) {
				removed = append(removed, t)
				continue
			}
			out = append(out, line...)
		}
		return out, nil
	})
	return removed, err
}

// change changes a file of tokens under a lock. The file stays unchanged if the result is not valid.
func change(path string, to func([]byte) ([]byte, error)) (err error) {
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := ParseTokens(text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if text, err = to(text); err != nil {
		return err
	}
	return disk.Put(path, filepath.Dir(path), text)
}

// Tokens are the tokens in a file. They are safe for concurrent use.
type Tokens struct{ file *file[[]Token] }

// OpenTokens reads a file of tokens, and again whenever it changes. It reports later faults to failed and keeps using
// the last valid content.
func OpenTokens(path string, failed func(error)) (*Tokens, error) {
	f, err := open(failed, func() ([]Token, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all, err := ParseTokens(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return all, nil
	}, path)
	return &Tokens{f}, err
}

// Find returns the token with a text, which may have expired; false if there is none. The time that it takes reveals
// nothing about the tokens.
func (t *Tokens) Find(text string) (Token, bool) {
	all, sum := t.file.get(), sha256.Sum256([]byte(text))
	found := -1
	for i := range all {
		if subtle.ConstantTimeCompare(all[i].Hash[:], sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Token{}, false
	}
	return all[found], true
}

// All returns the tokens.
func (t *Tokens) All() []Token { return slices.Clone(t.file.get()) }
