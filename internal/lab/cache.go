package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/internal/lab/score"
)

// cacheVersion changes whenever the same inputs give another row.
const cacheVersion = "5"

// A cache is a folder of results by the hash of everything that they depend on. Processes may share
// it: a file is written under another name and then renamed.
type cache struct{ dir string }

func openCache(dir string) (*cache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	return &cache{dir}, nil
}

func (c *cache) path(key string) string { return filepath.Join(c.dir, key[:2], key+".json") }

// get reads the result with that key into v, and reports whether there is one that can be read.
func (c *cache) get(key string, v any) bool {
	data, err := os.ReadFile(c.path(key))
	return err == nil && json.Unmarshal(data, v) == nil
}

func (c *cache) put(key string, v any) error {
	data, err := json.Marshal(v)
	name := c.path(key)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = os.WriteFile(name, data, 0o600) // Not atomic: a file that is cut short is not valid JSON, and get ignores it.
	}
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// keyOf returns the key of a result that depends on these values and on the number of the run.
func keyOf(run int, format string, values ...any) string {
	text := fmt.Sprintf(cacheVersion+"\n"+format, values...)
	if run > 1 {
		text += fmt.Sprintf("\nrun %d", run)
	}
	return hashOf([]byte(text))
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func cacheKey(session, strategy, encoding string, seed uint64, t task, run int) string {
	return keyOf(run, "%s\n%q\n%s\n%d\n%s %q %d %d %d", session, strategy, encoding, seed, t.budget, t.cut.Name, t.cut.At, t.cut.End, t.room)
}

// roundsKey is the key of the rounds along the session with a strategy.
func (w *sessionWork) roundsKey(strategy string, run int) string {
	o := &w.run.opts
	return keyOf(run, "rounds 3 %d %s\n%s\n%q\n%s", o.Rounds, w.fileFormat(), w.hash+" "+w.session.Source, strategy, o.Encoding)
}

// canaryKey is the key of the canaries in the session.
func (w *sessionWork) canaryKey(strategy string, b Budget, run int) string {
	o := &w.run.opts
	return keyOf(run, "%s 1 %s %d %d %s\n%s\n%q\n%s", w.set, b, o.canaryRounds(), o.Seed, w.fileFormat(), w.hash+" "+w.session.Source, strategy, o.Encoding)
}

// replayKey is cacheKey for one session under a policy and a tariff.
func replayKey(session string, s *score.Session, policy, encoding, what string, seed uint64, window, fixed int) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\nreplay %q %d %d %d\n%s %s %s\n%q\n%s\n", cacheVersion, what, seed, window, fixed, session, s.Source, s.ID, policy, encoding)
	_ = json.NewEncoder(h).Encode(s.Usage)
	return hex.EncodeToString(h.Sum(nil))
}

// saidHash returns a hash of the text of s: a session and its journal have the same, however else they differ.
func saidHash(s *score.Session) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	for i := range s.Messages {
		_ = e.Encode(s.Messages[i].Role)
		_ = e.Encode(s.Messages[i].Parts)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sessionHash returns a hash of everything in s that a row depends on, except its name and source.
func sessionHash(s *score.Session) string {
	h := sha256.New()
	e := json.NewEncoder(h)
	_ = e.Encode([]string{s.Mode, s.System})
	_ = e.Encode(s.Tools)
	_ = e.Encode(s.Messages)
	_ = e.Encode(s.Origins)
	_ = e.Encode(s.Compactions)
	return hex.EncodeToString(h.Sum(nil))
}
