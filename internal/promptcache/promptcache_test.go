package promptcache_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/promptcache"
)

const minute = time.Minute

// prompt makes a prompt of blocks of 1,000 tokens: a letter each; "*" and "!" after one are marks of 5 minutes and an
// hour, and the letters within parentheses are the calls of one message.
func prompt(text string) *promptcache.Prompt {
	p := &promptcache.Prompt{}
	var sum [16]byte
	run, open := 0, false
	for _, l := range text {
		switch l {
		case '*', '!':
			life := 5 * minute
			if l == '!' {
				life = time.Hour
			}
			p.Marks = append(p.Marks, promptcache.Mark{Block: len(p.Blocks) - 1, Life: life})
		case '(':
			run, open = run+1, true
		case ')':
			open = false
		default:
			all := sha256.Sum256(append(sum[:], string(l)...))
			copy(sum[:], all[:])
			b := promptcache.Block{Sum: sum, End: 1000 * (len(p.Blocks) + 1)}
			if open {
				b.Run = run
			}
			p.Blocks = append(p.Blocks, b)
		}
	}
	return p
}

// TestRules are cases of the vendors' pages, computed by hand. Numbers are thousands of tokens.
func TestRules(t *testing.T) {
	type request struct {
		after             time.Duration
		blocks            string
		read, write, hour int
	}
	claude := promptcache.Rules{Minimum: 1024}
	old := promptcache.Rules{Automatic: true, Minimum: 1024, Life: 24 * time.Hour, Step: 1000}
	recent := promptcache.Rules{Automatic: true, Minimum: 1024, Life: 30 * minute, Step: 1000, Writes: true}
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name  string
		rules promptcache.Rules
		all   []request
	}{
		{"marked: nothing without a mark", claude, []request{{0, "abc", 0, 0, 0}, {0, "abc", 0, 0, 0}}},
		{"marked: what follows the last mark is neither read nor written", claude, []request{{0, "ab*c", 0, 2, 0}, {0, "ab*d", 2, 0, 0}}},
		{"marked: the mark moves", claude, []request{{0, "ab*", 0, 2, 0}, {0, "abcd*", 2, 2, 0}}},
		{"marked: a prefix that is too short", claude, []request{{0, "a*", 0, 0, 0}, {0, "a*", 0, 0, 0}}},
		{"marked: counted from the start of the last use", claude, []request{{0, "ab*", 0, 2, 0}, {4 * minute, "ab*", 2, 0, 0}, {4 * minute, "ab*", 2, 0, 0}, {5 * minute, "ab*", 0, 2, 0}}},
		{"marked: an hour costs more and lasts longer", claude, []request{{0, "ab!c*", 0, 3, 2}, {6 * minute, "ab!c*", 2, 1, 0}}},
		{"marked: an edit in the middle", claude, []request{{0, "ab*cd*", 0, 4, 0}, {0, "ab*xd*", 2, 2, 0}}},
		{"marked: twenty positions, the mark's included", claude, []request{{0, "ab*", 0, 2, 0}, {0, "ab" + x(19) + "*", 2, 19, 0}}},
		{"marked: the twenty-first", claude, []request{{0, "ab*", 0, 2, 0}, {0, "ab" + x(20) + "*", 0, 22, 0}}},
		{"marked: calls of one message are one position", claude, []request{{0, "ab*", 0, 2, 0}, {0, "ab(" + x(30) + ")*", 2, 30, 0}}},
		{"automatic: no price for writing", old, []request{{0, "abc", 0, 0, 0}, {0, "abcd", 3, 0, 0}, {23 * time.Hour, "abcdef", 4, 0, 0}, {24 * time.Hour, "abcdef", 0, 0, 0}}},
		{"automatic: writing has a price", recent, []request{{0, "abc", 0, 3, 0}, {29 * minute, "abcd", 3, 1, 0}, {30 * minute, "abcd", 0, 4, 0}}},
		{"automatic: an edit, and back", recent, []request{{0, "abcd", 0, 4, 0}, {0, "abxd", 2, 2, 0}, {0, "abcde", 4, 1, 0}}},
		{"automatic: a branch that is not read is forgotten before its stem", recent, []request{{0, "abcd", 0, 4, 0}, {20 * minute, "abx", 2, 1, 0}, {20 * minute, "abcd", 2, 2, 0}}},
		{"automatic: too short", recent, []request{{0, "a", 0, 0, 0}, {0, "a", 0, 0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var cache promptcache.Cache
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			for i, r := range c.all {
				now = now.Add(r.after)
				p := prompt(r.blocks)
				u := cache.Lookup(p, c.rules, now)
				cache.Learn(&u, now)
				if u.Prompt != 1000*len(p.Blocks) || u.Read != 1000*r.read || u.Write != 1000*r.write || u.Hour != 1000*r.hour {
					t.Errorf("request %d: read %d, written %d, for an hour %d; want %d, %d, %d", i+1, u.Read, u.Write, u.Hour, 1000*r.read, 1000*r.write, 1000*r.hour)
				}
			}
		})
	}
}

// TestAutomatic: however prompts branch, what is read is the longest prefix of a prompt that was sent within the
// lifetime.
func TestAutomatic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := promptcache.Rules{Automatic: true, Life: 10 * minute}
		var cache promptcache.Cache
		type sent struct {
			text string
			at   time.Time
		}
		var all []sent
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "minutes")) * minute)
			text := rapid.StringMatching(`[ab]{0,4}c`).Draw(t, "prompt")
			want := 0
			for _, s := range all {
				n := 0
				for n < min(len(text), len(s.text)) && text[n] == s.text[n] {
					n++
				}
				if now.Before(s.at.Add(rules.Life)) {
					want = max(want, n)
				}
			}
			u := cache.Lookup(prompt(text), rules, now)
			cache.Learn(&u, now)
			if u.Read != 1000*want {
				t.Fatalf("%s: read %d, want %d of %+v", text, u.Read, 1000*want, all)
			}
			all = append(all, sent{text, now})
		}
	})
}
