package chain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/chain"
)

// told is an answer with an ID and these texts.
func told(id string, stream bool, texts ...string) []byte {
	var items []string
	for i, s := range texts {
		items = append(items, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q}]}`, i, s))
	}
	items = append(items, `{"id":"rs","type":"reasoning","summary":[]}`) // only the vendor has it
	response := fmt.Sprintf(`{"id":%q,"status":"completed","output":[%s]}`, id, strings.Join(items, ","))
	if !stream {
		return []byte(response)
	}
	var out strings.Builder
	for _, item := range items {
		fmt.Fprintf(&out, "event: x\r\ndata: {\"type\":\"response.output_item.done\",\r\ndata: \"item\":%s}\r\n\r\n", item)
	}
	fmt.Fprintf(&out, "data: {\"type\":\"response.completed\",\"response\":%s}\n\n", response)
	return []byte(out.String())
}

func answered(r *chain.Request, most int64, answer []byte, size int) {
	a := chain.NewAnswer(most)
	for len(answer) > 0 {
		n := min(size, len(answer))
		_, _ = a.Write(answer[:n])
		answer = answer[n:]
	}
	r.Heard(a)
	r.Answered(a)
}

// A model of a vendor: it has the items of each response. Whatever views are sent, it has the view of the last request, and a request
// without a change arrives as its client wrote it.
func TestVendorHasTheView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := chain.New(1 << 20)
		vendor := map[string][]string{} // the items that the vendor has
		client := map[string][]string{} // those that the client believes to have sent
		var ids []string
		steps := rapid.IntRange(1, 12).Draw(t, "steps")
		for n := range steps {
			var own []string
			for k := range rapid.IntRange(1, 3).Draw(t, "items") {
				own = append(own, fmt.Sprintf(`{"role":"user","content":"%d.%d \n é"}`, n, k))
			}
			input := "[" + strings.Join(own, " , ") + "]"
			if len(own) == 1 && rapid.Bool().Draw(t, "string") {
				input = rawText(own[0])
			}
			frame, previous := rapid.Bool().Draw(t, "frame"), ""
			head := `{"model":"m", "input": ` + input
			if frame {
				head = `{ "type" : "response.create","input":` + input + `,"model":"m"`
			}
			if len(ids) > 0 && rapid.IntRange(0, 5).Draw(t, "goes on") > 0 {
				previous = rapid.SampledFrom(ids).Draw(t, "previous")
				head += fmt.Sprintf(` ,"previous_response_id":%q`, previous)
			}
			body := []byte(head + "}")
			r, known := h.Open("me", body, frame)
			if !known {
				t.Fatalf("not known: %s", body)
			}
			whole := append(append([]string(nil), client[previous]...), own...)
			if got := texts(r.Whole); !equal(got, whole) {
				t.Fatalf("the whole is %q, want %q", got, whole)
			}
			view := r.Whole
			unchanged := previous == "" || equal(vendor[previous], client[previous])
			switch rapid.IntRange(0, 3).Draw(t, "view") {
			case 0: // an epoch
				view = rawjson.SetField(r.Whole, "input", []byte(`[{"role":"user","content":"block"},`+own[len(own)-1]+`]`))
				unchanged = false
			case 1: // the frozen view
				all := append(append([]string(nil), vendor[previous]...), own...)
				view = rawjson.SetField(r.Whole, "input", []byte("["+strings.Join(all, ",")+"]"))
				unchanged = true
			}
			out, continues := r.Sending(view)
			if unchanged && !bytes.Equal(out, body) {
				t.Fatalf("sent %s\nwant %s", out, body)
			}
			has := texts(out)
			if continues {
				if chain.Previous(out) != previous {
					t.Fatalf("it continues %q", chain.Previous(out))
				}
				has = append(append([]string(nil), vendor[previous]...), has...)
			}
			if want := texts(view); !equal(has, want) {
				t.Fatalf("the vendor has %q, want %q", has, want)
			}
			id := fmt.Sprint("resp_", n)
			said := fmt.Sprint("answer ", n)
			answered(r, 1<<20, told(id, rapid.Bool().Draw(t, "stream"), said), rapid.IntRange(1, 300).Draw(t, "chunk"))
			item := fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, said)
			vendor[id], client[id] = append(has, item), append(whole, item)
			ids = append(ids, id)
		}
	})
}

func rawText(item string) string { return string(rawjson.Field([]byte(item), "content")) }

func texts(body []byte) (out []string) {
	for _, item := range wire.Input(body) {
		out = append(out, string(item))
	}
	return out
}

func equal(a, b []string) bool { return strings.Join(a, "\x00") == strings.Join(b, "\x00") }

// Histories are bounded: in all, and for each owner. What does not fit is unknown, and never another's.
func TestBounds(t *testing.T) {
	t.Parallel()
	h := chain.New(40_000)
	text := strings.Repeat("x", 1000)
	tell := func(owner, id, previous string) bool {
		body, err := json.Marshal(map[string]any{"input": text, "previous_response_id": previous})
		if err != nil {
			t.Fatal(err)
		}
		r, known := h.Open(owner, body, false)
		if known {
			r.Sending(r.Raw)
			answered(r, 1<<20, told(id, true, text), 1000)
		}
		return known
	}
	tell("a", "first", "")
	for i := range 100 {
		tell("b", fmt.Sprint("b", i), "")
	}
	if !tell("a", "second", "first") {
		t.Error("the history of one was forgotten for another's")
	}
	if tell("b", "x", "b0") || !tell("b", "y", "b99") {
		t.Error("not the oldest was forgotten")
	}
	if tell("b", "z", "second") {
		t.Error("a response of another owner is known")
	}
	previous, n := "second", 0
	for ; n < 30 && tell("a", fmt.Sprint("a", n), previous); n++ {
		previous = fmt.Sprint("a", n)
	}
	if n == 30 {
		t.Error("a conversation has no bound")
	}
	r, _ := h.Open("a", []byte(`{"input":"x"}`), false)
	r.Sending(r.Raw)
	answered(r, 500, told("large", true, text), 100)
	if tell("a", "x", "large") {
		t.Error("an answer has no bound")
	}
}

func FuzzChain(f *testing.F) {
	f.Add([]byte(`{"type":"response.create","input":"a"}`), []byte(`{"input":[{"role":"user","content":"b"}],"previous_response_id":"r"}`), told("r", true, "a"))
	f.Add([]byte(`{"input":[1,null]}`), []byte(` {"previous_response_id":"r","input":[]} `), told("r", false, "a"))
	f.Add([]byte(`{}`), []byte(`{"previous_response_id":"r","previous_response_id":"r"}`), []byte(`{"id":"r","status":"completed","output":[[],{}]}`))
	f.Fuzz(func(t *testing.T, one, two, answer []byte) {
		h := chain.New(1 << 20)
		for _, body := range [][]byte{one, two} {
			for _, frame := range []bool{false, true} {
				r, known := h.Open("o", bytes.Clone(body), frame)
				if !known {
					continue
				}
				if json.Valid(body) && !json.Valid(r.Whole) {
					t.Fatalf("%q became %q", body, r.Whole)
				}
				if chain.Previous(r.Whole) != "" {
					t.Fatalf("%q names a response", r.Whole)
				}
				if out, _ := r.Sending(body); !bytes.Equal(out, body) {
					t.Fatalf("%q was sent as %q", body, out)
				}
				answered(r, 1<<20, answer, 7)
			}
		}
	})
}
