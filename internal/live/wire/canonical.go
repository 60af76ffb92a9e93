package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/condensehq/condense/internal/rawjson"
)

const longest = 512

// finish ends the canonical form that begins at from.
func (p *parser) finish(from int, kind byte, size int) {
	p.buf = append(p.buf, kind)
	p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(size))
	if len(p.buf)-from > longest {
		sum := sha256.Sum256(p.buf[from:])
		p.buf = append(append(p.buf[:from], sum[:]...), '#')
	}
}

// list makes the text at the end of buf an array of one, or none.
func (p *parser) list(from int) {
	if p.gone {
		p.buf = p.buf[:from]
		p.finish(from, 'a', 0)
		return
	}
	p.finish(from, 'a', 1)
}

// drop removes volatile texts from the text that begins at from, and reports whether nothing but
// space is left of one that had some.
func (p *parser) drop(from int) bool {
	dropped := false
	for _, v := range p.volatile {
		kept, rest := p.buf[:from], p.buf[from:]
		end := cmp.Or(v.End, "\n")
		for v.Begin != "" {
			i := bytes.Index(rest, []byte(v.Begin))
			if i < 0 {
				break
			}
			dropped = true
			kept, rest = append(kept, rest[:i]...), rest[i+len(v.Begin):]
			if i = bytes.Index(rest, []byte(end)); i < 0 {
				i = len(rest) - len(end)
			}
			rest = rest[max(0, i+len(end)):]
		}
		p.buf = append(kept, rest...) // never longer than it was
	}
	p.cut = p.cut || dropped
	return dropped && len(bytes.TrimSpace(p.buf[from:])) == 0
}

// last drops all but the last of members with the same name, and puts them in the order of their
// names.
func (p *parser) last(own []member) []member {
	sorted := slices.IsSortedFunc(own, func(a, b member) int {
		return cmp.Or(bytes.Compare(a.key, b.key), -1) // equal names are not sorted
	})
	if !sorted {
		slices.SortStableFunc(own, func(a, b member) int { return bytes.Compare(a.key, b.key) })
		kept := own[:0]
		for i, m := range own {
			if i+1 == len(own) || !bytes.Equal(m.key, own[i+1].key) {
				kept = append(kept, m)
			}
		}
		own = kept
	}
	return own
}

// write replaces the canonical forms of members, which begin at from, by the object's.
func (p *parser) write(at place, own []member, from int) {
	if at == inBlock || at == inResultBlock {
		if t, only := oneText(own); only {
			p.buf = append(p.buf[:from], p.buf[t.from:t.mid]...)
			p.gone = t.gone
			return
		}
	}
	if p.d.read.byMember && at != inMessage && len(own) == 1 {
		if p.gone = own[0].gone || string(own[0].key) == cachePoint; p.gone {
			p.buf = p.buf[:from]
			return
		}
	}
	p.spare = p.spare[:0]
	n := 0
	for _, m := range own {
		if at != ordinary && isMarker(m.key) || p.d.read.marginal != nil && p.d.read.marginal(at, own, m) {
			continue
		}
		n++
		p.spare = append(p.spare, p.buf[m.from:m.end]...)
	}
	p.buf = append(p.buf[:from], p.spare...)
	p.finish(from, 'o', n)
}

// oneText returns the text of a block that has only that.
func oneText(own []member) (member, bool) {
	var t member
	n := 0
	for _, m := range own {
		switch {
		case isMarker(m.key), isEmptyArray(m.raw) && (string(m.key) == "annotations" || string(m.key) == "logprobs"):
			continue
		case string(m.key) == "text" && rawjson.IsString(m.raw):
			t = m
		case string(m.key) != "type" || !isTextType(m.raw):
			return t, false
		}
		n++
	}
	return t, n == 2
}

// isText reports whether a block is a text by its type.
func isText(block []byte) bool { return isTextType(rawjson.Field(block, "type")) }

func isTextType(raw []byte) bool {
	switch string(raw) {
	case `"text"`, `"input_text"`, `"output_text"`:
		return true
	}
	return false
}

// isMarker reports whether key is a cache marker of Anthropic, of OpenAI or of Amazon.
func isMarker(key []byte) bool {
	return string(key) == "cache_control" || string(key) == "prompt_cache_breakpoint" || string(key) == cachePoint
}

// find returns the raw value of the member called name; nil if there is none.
func find(own []member, name string) []byte {
	for i := range slices.Backward(own) {
		if string(own[i].key) == name {
			return own[i].raw
		}
	}
	return nil
}
