package tokens_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

// BenchmarkCount compares with tiktoken-go in one run, so that the ratio holds on any
// machine. The sizes are those of the texts; a history is counted string by string.
func BenchmarkCount(b *testing.B) {
	o200k, cl100k := open(b, tokens.O200kBase), open(b, tokens.CL100kBase)
	counters := []struct {
		name  string
		count func(string) int
	}{
		{"o200k", o200k.CountText},
		{"cl100k", cl100k.CountText},
		{"tiktoken-go-o200k", oracle(b, tokens.O200kBase)},
	}
	for _, c := range corpora(b) {
		size := 0
		for _, s := range c.texts {
			size += len(s)
		}
		for _, counter := range counters {
			b.Run(c.name+"/"+counter.name, func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					for _, s := range c.texts {
						counter.count(s)
					}
				}
			})
		}
	}
}

func BenchmarkPrefix(b *testing.B) {
	enc := open(b, tokens.O200kBase)
	for _, c := range corpora(b) {
		s := strings.Join(c.texts, "\n")
		n := enc.CountText(s) / 2
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(s) / 2))
			for b.Loop() {
				enc.Prefix(s, n)
			}
		})
	}
}

type corpus struct {
	name  string
	texts []string
}

const corpusSize = 256 << 10

func corpora(tb testing.TB) []corpus {
	tb.Helper()
	r := rand.New(rand.NewPCG(7, 8))
	recorded := sessions(tb)
	var prose, data, code strings.Builder
	for _, s := range recorded {
		switch {
		case s.key == "text":
			fmt.Fprintln(&prose, s.text)
		case len(s.text) > 2 && json.Valid([]byte(s.text)):
			var b bytes.Buffer
			if err := json.Indent(&b, []byte(s.text), "", "  "); err != nil {
				tb.Fatal(err)
			}
			fmt.Fprintln(&data, b.String())
		}
	}
	for _, pattern := range []string{"../core/*.go", "../transcript/*.go", "*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				tb.Fatal(err)
			}
			code.Write(content)
		}
	}
	history := make([]string, len(recorded))
	for i, s := range recorded {
		history[i] = s.text
	}
	return []corpus{
		{"prose", []string{clip(prose.String())}},
		{"code", []string{clip(code.String())}},
		{"json", []string{clip(data.String())}},
		{"logs", []string{clip(logs(r))}},
		{"base64", []string{clip(base64Lines(r))}},
		{"cjk", []string{clip(cjk(r))}},
		{"history", history},
	}
}

// A part is a string of a message, and its key.
type part struct{ key, text string }

// sessions returns what is in the messages of the sessions that the repository has.
func sessions(tb testing.TB) []part {
	tb.Helper()
	var parts []part
	for _, file := range testkit.Sessions(tb) {
		compressed, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			tb.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			tb.Fatal(err)
		}
		var session struct {
			System   string
			Messages []struct{ Content []map[string]json.RawMessage }
		}
		if err := json.Unmarshal(data, &session); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		parts = append(parts, part{"system", session.System})
		for _, m := range session.Messages {
			for _, block := range m.Content {
				for _, key := range []string{"text", "name", "input", "content"} {
					raw, ok := block[key]
					if !ok {
						continue
					}
					var s string
					if json.Unmarshal(raw, &s) != nil {
						s = string(raw)
					}
					parts = append(parts, part{key, s})
				}
			}
		}
	}
	return parts
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), corpusSize)], "") }

func cjk(r *rand.Rand) string {
	var b strings.Builder
	for b.Len() < corpusSize {
		b.WriteString(sentences[r.IntN(len(sentences))])
		if r.IntN(6) == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func logs(r *rand.Rand) string {
	var b strings.Builder
	for i := 0; b.Len() < corpusSize; i++ {
		fmt.Fprintf(&b, "2025-03-%02dT%02d:%02d:%02d.%06dZ %s [worker-%d] request_id=%08x-%04x method=%s path=/api/v2/users/%d/orders status=%d duration=%dms bytes=%d\n",
			1+i/9000, r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1e6), []string{"INFO ", "WARN ", "ERROR", "DEBUG"}[r.IntN(4)], r.IntN(32),
			r.Uint32(), r.IntN(1<<16), []string{"GET", "POST", "PUT", "DELETE"}[r.IntN(4)], r.IntN(1e5), []int{200, 201, 304, 404, 500}[r.IntN(5)], r.IntN(3000), r.IntN(1e6))
	}
	return b.String()
}

func base64Lines(r *rand.Rand) string {
	var b strings.Builder
	var line [57]byte
	for b.Len() < corpusSize {
		for i := range line {
			line[i] = byte(r.IntN(256))
		}
		b.WriteString(base64.StdEncoding.EncodeToString(line[:]))
		b.WriteByte('\n')
	}
	return b.String()
}

var sentences = strings.SplitAfter(`模型每次请求都会重新读取整个对话。当上下文窗口快要满的时候，必须有所取舍：要么删除最早的消息，要么用更少的文字概括它们的内容。摘要需要额外的一次请求，会丢失当时没有人认为重要的细节，而且无法撤销。截断不需要任何成本，但是会忘记一切。在这两者之间存在着许多谨慎的折衷方案。被后来的结果所取代的工具输出不需要再次发送，一个被读取三次的文件只有一次是最新的。窗口里的大部分内容并不是思考，而是输出：目录列表、日志、测试运行结果和文件内容。用户所说的话通常很短，值得逐字保留。会話の全体はリクエストのたびに読み直されます。コンテキストがほぼ一杯になったとき、古いメッセージを捨てるか、短い言葉で要約するかを選ばなければなりません。要約には別のリクエストが必要で、当時は誰も重要だと思わなかった詳細が失われます。ツールの出力の多くは二度と参照されないので、省略しても気づかれません。利用者の指示は短いので、そのまま残す価値があります。`, "。")
