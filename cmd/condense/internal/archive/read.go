package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/search"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/transcript"
)

// A row is a piece of a session.
type row struct {
	handle       int64
	what, status string
	subject      int64  // hash of the file or command; 0 for none
	about        string // the file or command
	isFile       bool
	time         int64 // in milliseconds; 0 if unknown
	edits        bool
	at, size     int64 // the bytes of the message in the file; the size is 0 if they are not known
	stems        string
	bytes        int
}

// The content of a session. Head and tail are the numbers of bytes before its first and after its last message: with a
// message between, they are a session of one message, which is read faster.
type content struct {
	rows       []row
	head, tail int64
}

// A reader reads the pieces of sessions.
type reader struct {
	stemmer search.Stemmer
	seen    map[string]int // by stem, the number of the last piece that had it
	pieces  int
}

// contentOf returns the bytes of a session.
func contentOf(ctx context.Context, path string) ([]byte, error) {
	if strings.Contains(path, inDatabase) {
		return export(ctx, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return transcript.ReadAll(f, maxFile)
}

func conversation(data []byte, path string) (*recall.Conversation, error) {
	d, err := transcript.Read(bytes.NewReader(data), &transcript.ReadOptions{Name: path, MaxBytes: maxFile})
	if err != nil {
		return nil, err
	}
	return recall.New(d.Journal), nil
}

const (
	maxSubject = 200 // bytes of a command or a path that are kept
	longKey    = 512 // bytes of one that begins there
)

func (r *reader) read(ctx context.Context, f *File) (content, error) {
	data, err := contentOf(ctx, f.Path)
	if err != nil {
		return content{}, err
	}
	c, err := conversation(data, f.Path)
	if err != nil {
		return content{}, err
	}
	calls := map[string]dialog.CallInfo{}
	seen := map[string]bool{}
	var out content
	found := finder{data: data}
	pieces := c.Own.All()
	for i := range pieces {
		p := &pieces[i]
		at := &p.Places[0]
		call, isCall := p.Part.(core.ToolCall)
		if isCall {
			calls[call.ID] = dialog.ParseCall(call.Name, call.Args)
		}
		from, size := found.message(&at.Message)
		text := p.Text()
		_, isImage := p.Part.(core.Image)
		_, isOpaque := p.Part.(core.Opaque)
		if isImage || isOpaque || p.Sealed() || seen[p.Handle] || at.InsertedBy != "" || strings.TrimSpace(text) == "" {
			continue
		}
		seen[p.Handle] = true
		about := calls[call.ID]
		result, isResult := p.Part.(core.ToolResult)
		if isResult {
			about = calls[result.CallID]
		}
		x := row{
			handle: number(p.Handle), what: p.What, bytes: len(text), isFile: p.Path != "", at: from, size: size,
			edits: isCall && (about.Family == dialog.FamilyEdit || about.Family == dialog.FamilyWrite),
		}
		if x.about = p.Path; x.about == "" {
			x.about = about.Target
		}
		// More is scrubbed than is kept, for no part of a key is recognized as one.
		x.about = secret.Scrub(strings.ToValidUTF8(x.about[:min(len(x.about), maxSubject+longKey)], ""))
		x.about = strings.ToValidUTF8(x.about[:min(len(x.about), maxSubject)], "")
		if x.isFile {
			x.subject = hash(absolute(f, p.Path))
		} else if x.about != "" {
			x.subject = hash("$ " + x.about)
		}
		if isResult {
			x.status = status(text, &about, result.IsError)
		}
		if !at.Message.Time.IsZero() {
			x.time = at.Message.Time.UnixMilli()
		}
		x.stems = r.stems(text + "\n" + p.Path + "\n" + x.about)
		out.rows = append(out.rows, x)
	}
	out.head, out.tail = found.envelope()
	return out, nil
}

// number returns a handle as a number.
func number(handle string) int64 {
	n, err := strconv.ParseInt(handle, 16, 64)
	if err != nil {
		return -1 // no content has such a handle
	}
	return n
}

// hash returns a positive number for a text.
func hash(text string) int64 {
	sum := sha256.Sum256([]byte(text))
	return int64(binary.BigEndian.Uint64(sum[:])>>1) | 1
}

// A finder finds messages in the bytes of their file, one after the other.
type finder struct {
	data        []byte
	last        []byte // the message that was found last
	first, next int
	lost        bool
}

// message returns the position and the size of a message; zeros if it is not found. A message without bytes of its own is
// looked for in those before it: some formats have a call and its result in one record.
func (f *finder) message(m *core.Message) (at, size int64) {
	if f.lost {
		return 0, 0
	}
	if len(m.Source) > 0 && (f.last == nil || &m.Source[0] != &f.last[0]) {
		i := bytes.Index(f.data[f.next:], m.Source)
		if i < 0 {
			f.lost = true // looking on takes the square of the time
			return 0, 0
		}
		if f.last == nil {
			f.first = i
		}
		f.last, f.next = m.Source, f.next+i+len(m.Source)
	}
	return int64(f.next - len(f.last)), int64(len(f.last))
}

// maxEnvelope is the most bytes around messages that are worth reading with one of them.
const maxEnvelope = 64 << 10

// envelope returns the bytes before the first and after the last message; -1 if they are not known or too many.
func (f *finder) envelope() (head, tail int64) {
	if head, tail = int64(f.first), int64(len(f.data)-f.next); f.lost || f.last == nil || head+tail > maxEnvelope {
		return -1, -1
	}
	return head, tail
}

// absolute returns the path of a file as it is compared between sessions.
func absolute(f *File, path string) string {
	switch {
	case path == "" || filepath.IsAbs(path):
		return path
	case f.Dir != "":
		return filepath.Join(f.Dir, path)
	}
	return f.Path + ":" + path // of this session only
}

// status returns how a call ended: with the exit code of its command, or failed.
func status(text string, call *dialog.CallInfo, marked bool) string {
	if call.Family == dialog.FamilyCommand {
		if code := dialog.ExitCode(text); code != "" {
			return "exit " + code
		}
	}
	if marked || dialog.Failed(call.Family, call.Target, text) {
		return "failed"
	}
	return ""
}

// maxStems bounds the stems that a reader remembers.
const maxStems = 1 << 18

// stems returns the different stems of text without keys and without random names.
func (r *reader) stems(text string) string {
	var b strings.Builder
	if r.pieces++; r.seen == nil || len(r.seen) > maxStems {
		r.seen = map[string]int{}
	}
	search.Words(strings.ReplaceAll(secret.Scrub(text), secret.Redacted, " "), func(w []byte, _ bool) {
		if len(w) > maxWord || random(w) || search.Stop(w) {
			return
		}
		stem := r.stemmer.Stem(w)
		if r.seen[stem] == r.pieces {
			return
		}
		r.seen[stem] = r.pieces
		b.WriteString(stem)
		b.WriteByte(' ')
	})
	return b.String()
}

const maxWord = 64 // bytes; longer ones are no names

// random reports whether a word is part of a key, a checksum or base64: long, with digits all over.
func random(w []byte) bool {
	if len(w) < 12 {
		return false
	}
	digits, changes := 0, 0
	for i, b := range w {
		is := '0' <= b && b <= '9'
		if is {
			digits++
		}
		if i > 0 && is != ('0' <= w[i-1] && w[i-1] <= '9') {
			changes++
		}
	}
	return digits > 0 && changes >= len(w)/6
}
