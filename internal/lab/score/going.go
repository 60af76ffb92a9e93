package score

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/toolcall"
)

// The measures of this file do not look for names or words. The panel rewards a needed line wherever it is; these
// measure whether the view predicts the next messages, whether it has the text that the agent edited next, and
// whether a reader can read it.

// Continuation has the measures that are not in the panel.
type Continuation struct {
	// Gain is the conditional compression gain: the information that the view gives a compressor about the future, as
	// a share of the information in the prefix.
	Gain Share `json:"gain"`
	// Anchors is the share of the lines that the agent quotes in its next edits.
	Anchors Share `json:"anchors"`
	// Torn is the share of the typed messages whose sentences were moved or joined, Legible the share of the lines of
	// results in readable runs.
	Torn    Share `json:"torn"`
	Legible Share `json:"legible"`
	// Decisions is the share of the agent's sentences that state a cause, a choice or a finding, without the newest.
	Decisions Share `json:"decisions"`
}

// Continuation measures view as [Scorer.Score] does, by measures that are not in the panel. It compresses the future
// with the view before it, which takes tens of megabytes for a while, and more time than everything else.
func (s *Scorer) Continuation(view []core.Message) Continuation {
	return Continuation{
		Gain: s.gain(view), Anchors: s.anchorsKept(view), Torn: s.torn(view), Legible: s.legible(view), Decisions: s.decisionsKept(view),
	}
}

const (
	anchorMessages = 120 // after the cut, in which edits are read
	anchorBytes    = 14  // a shorter line is in many files
	fewestAnchors  = 5
	minRun         = 5 // lines of a result that can be read without their neighbours
	// maxHistory bounds the compressor's history. 8 MiB is the largest window that decoders must support (RFC 8878).
	maxHistory = 8 << 20
)

// A going holds the data of a cut that does not depend on the view.
type going struct {
	once    sync.Once
	future  []byte
	alone   int // bytes of the compressed future
	full    int // the same, given all of the prefix
	anchors map[uint64]bool
	said    []saying
	// decisions are sentences of the agent.
	decisions []string
}

// A saying is a typed message of several sentences.
type saying struct {
	text      string
	sentences []core.Span
}

func (s *Scorer) readGoing() *going {
	g := &s.going
	g.once.Do(func() {
		session, prefix := s.cut.Session, s.cut.Prefix()
		var future strings.Builder
		for m := s.cut.At; m < s.cut.End; m++ {
			for p, part := range session.Messages[m].Parts {
				if o := session.Origin(m, p); o == OriginAgent || o == OriginUser {
					blocks([]core.Part{part}, func(_ int, text string) { future.WriteString(text + "\n") })
				}
			}
		}
		g.future = []byte(future.String())
		g.alone, g.full = compressed(g.future, nil), compressed(g.future, historyOf(prefix))
		g.anchors = s.readAnchors()
		g.decisions = s.readDecisions()
		for m := range prefix {
			for p, part := range prefix[m].Parts {
				if !session.typed(m, p) {
					continue
				}
				t, _ := part.(core.Text)
				h := saying{text: folded(string(t))}
				sentences(h.text, func(start, end int) {
					if len(strings.Fields(h.text[start:end])) >= sentenceWords {
						h.sentences = append(h.sentences, core.Span{Start: start, End: end})
					}
				})
				if len(h.sentences) > 1 {
					g.said = append(g.said, h)
				}
			}
		}
	})
	return g
}

// folded returns s with every run of white space as one space.
func folded(s string) string { return strings.Join(strings.Fields(s), " ") }

func historyOf(messages []core.Message) []byte {
	var b strings.Builder
	for i := range messages {
		blocks(messages[i].Parts, func(_ int, text string) { b.WriteString(text + "\n") })
	}
	text := b.String()
	return []byte(text[max(0, len(text)-maxHistory):])
}

// sizes are those that compressed has returned, by the checksums of text and history: a strategy that is run again mostly leaves the same
// history, and to prepare a compressor takes 30 ms.
var (
	sizesLock sync.Mutex
	sizes     = map[[2 * sha256.Size]byte]int{}
)

const maxSizes = 10_000

// compressed returns the size in bytes of text, compressed by zstd with history before it.
func compressed(text, history []byte) int {
	var key [2 * sha256.Size]byte
	of, after := sha256.Sum256(text), sha256.Sum256(history)
	copy(key[copy(key[:], of[:]):], after[:])
	sizesLock.Lock()
	size, known := sizes[key]
	sizesLock.Unlock()
	if known {
		return size
	}
	size = compress(text, history)
	sizesLock.Lock()
	defer sizesLock.Unlock()
	if len(sizes) >= maxSizes {
		clear(sizes)
	}
	sizes[key] = size
	return size
}

func compress(text, history []byte) int {
	if len(history) <= 8 { // shorter than the library takes
		w, err := zstd.NewWriter(nil, compression...)
		if err != nil {
			return len(text)
		}
		defer func() { _ = w.Close() }()
		return len(w.EncodeAll(text, nil))
	}
	var size byteCount
	w, _ := compressors.Get().(*zstd.Encoder)
	var err error
	if w == nil {
		w, err = zstd.NewWriter(&size, append(slices.Clone(compression), zstd.WithEncoderDictRaw(1, history), zstd.WithWindowSize(maxHistory))...)
	} else {
		err = w.ResetWithOptions(&size, zstd.WithEncoderDictRaw(1, history))
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return len(text)
	}
	compressors.Put(w)
	return int(size)
}

var (
	compression = []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false)}
	// compressors are encoders with a history. Each has 80 MB of tables, which take longer to allocate than a short text to compress.
	compressors sync.Pool
)

// A byteCount counts the bytes that are written to it.
type byteCount int

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

// gain returns the conditional compression gain: the bytes that the view saves in compressing the next messages of
// user and agent, as a share of the bytes that the whole prefix saves. A general compressor knows neither names nor
// rare words, so nothing was tuned to it.
func (s *Scorer) gain(view []core.Message) Share {
	g := s.readGoing()
	if g.alone <= g.full {
		return Share{}
	}
	return Share{Kept: max(0, float64(g.alone-compressed(g.future, historyOf(view)))), Needed: float64(g.alone - g.full)}
}

// readAnchors returns the lines that the agent quotes in its next edits, that were in the prefix, and that no tool
// showed again in between.
func (s *Scorer) readAnchors() map[uint64]bool {
	anchors, shown := map[uint64]bool{}, map[uint64]bool{}
	before := map[uint64]bool{}
	for i := range s.cut.Prefix() {
		anchorLines(s.cut.Prefix()[i].Parts, func(h uint64) { before[h] = true })
	}
	messages := s.cut.Session.Messages
	for _, m := range messages[s.cut.At:min(len(messages), s.cut.At+anchorMessages)] {
		for _, p := range m.Parts {
			if c, ok := p.(core.ToolCall); ok {
				for _, line := range quoted(c.Args) {
					if h, ok := anchorHash(line); ok && before[h] && !shown[h] {
						anchors[h] = true
					}
				}
			}
		}
		anchorLines(m.Parts, func(h uint64) { shown[h] = true })
	}
	return anchors
}

func anchorLines(parts []core.Part, yield func(h uint64)) {
	blocks(parts, func(_ int, text string) {
		for line := range strings.SplitSeq(strings.ReplaceAll(text, `\n`, "\n"), "\n") {
			if h, ok := anchorHash(line); ok {
				yield(h)
			}
		}
	})
}

// anchorHash returns the hash of a line without its number and its white space; false if it is too short to say where
// it is.
func anchorHash(line string) (uint64, bool) {
	if m := numberedLine().FindString(line); m != "" {
		line = line[len(m):]
	}
	line = folded(strings.TrimPrefix(line, "|"))
	return hashString(fnvOffset, line), len(line) >= anchorBytes
}

// quoted returns the lines of files that the arguments of a call quote: the text that an edit replaces, and the lines
// that a patch removes or leaves.
func quoted(args string) (out []string) {
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				walk(k, e)
			}
		case []any:
			for _, e := range v {
				walk(key, e)
			}
		case string:
			if toolcall.RoleOf(key)&toolcall.Old != 0 {
				out = append(out, strings.Split(v, "\n")...)
			} else {
				out = append(out, patched(v)...)
			}
		}
	}
	var v any
	if json.Unmarshal([]byte(args), &v) != nil {
		return patched(args)
	}
	walk("", v)
	return out
}

// patched returns the lines that a patch or a block of SEARCH and REPLACE in text quotes.
func patched(text string) (out []string) {
	if strings.Contains(text, "*** Begin Patch") {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ") {
				out = append(out, line[1:])
			}
		}
	}
	for _, pair := range toolcall.SearchReplace(text) {
		out = append(out, strings.Split(pair[0], "\n")...)
	}
	return out
}

// anchorsKept returns the share of the lines that the agent edits next that are in view.
func (s *Scorer) anchorsKept(view []core.Message) Share {
	g := s.readGoing()
	if len(g.anchors) < fewestAnchors {
		return Share{}
	}
	have := map[uint64]bool{}
	for i := range view {
		anchorLines(view[i].Parts, func(h uint64) {
			if g.anchors[h] {
				have[h] = true
			}
		})
	}
	return Share{Kept: float64(len(have)), Needed: float64(len(g.anchors))}
}

// gapMarks are the marks by which strategies show omissions.
var gapMarks = []string{"…", "[...", "..."}

// torn returns the share of torn messages among the typed messages with two or more sentences in view. A message is
// torn if sentences are out of order, or joined without a mark between them.
func (s *Scorer) torn(view []core.Message) Share {
	var out Share
	var b strings.Builder
	for i := range view {
		if view[i].Role != core.RoleUser {
			continue
		}
		for _, p := range view[i].Parts {
			if t, ok := p.(core.Text); ok {
				b.WriteString(string(t) + "\n\n")
			}
		}
	}
	text := folded(b.String())
	for _, h := range s.readGoing().said {
		if strings.Contains(text, h.text) {
			out.Needed++
			continue
		}
		last, end, kept, bad := -1, 0, 0, false
		for i, at := range h.sentences {
			k := strings.Index(text[end:], h.text[at.Start:at.End])
			if k < 0 {
				if strings.Contains(text, h.text[at.Start:at.End]) && kept > 0 {
					bad, kept = true, kept+1 // out of order
				}
				continue
			}
			if k += end; last >= 0 {
				between := text[end:k]
				whole := i == last+1 && strings.TrimSpace(between) == strings.TrimSpace(h.text[h.sentences[last].End:at.Start])
				marked := false
				for _, mark := range gapMarks {
					marked = marked || strings.Contains(between, mark)
				}
				bad = bad || !whole && !marked
			}
			last, end, kept = i, k+at.End-at.Start, kept+1
		}
		if kept > 1 {
			out.Needed++
			if bad {
				out.Kept++
			}
		}
	}
	return out
}

// legible returns the share of the lines of results in view that are in runs of five or more lines as they followed
// each other, or in whole results.
func (s *Scorer) legible(view []core.Message) Share {
	var out Share
	p := &s.prefix
	for i := range view {
		blocks(view[i].Parts, func(_ int, text string) {
			last, run, first := int32(-1), 0, false
			end := func() {
				if run > 0 {
					out.Needed += float64(run)
					if run >= minRun || first && p.lines[last].last {
						out.Kept += float64(run)
					}
				}
				run = 0
			}
			lines(text, func(line string) {
				h := lineHash(line)
				if h == 0 {
					return
				}
				if run > 0 && !p.lines[last].last && p.lines[last+1].hash == h {
					last, run = last+1, run+1
					return
				}
				end()
				for _, at := range p.positions[h] {
					if p.lines[at].result {
						last, run, first = at, 1, p.lines[at].first
						break
					}
				}
			})
			end()
		})
	}
	return out
}
