package transcript

import (
	"bytes"
)

// replaceValue returns raw with the value old, a part of it, replaced by value.
func replaceValue(raw, old, value []byte) []byte {
	at := offsetIn(raw, old)
	out := make([]byte, 0, len(raw)-len(old)+len(value))
	return append(append(append(out, raw[:at]...), value...), raw[at+len(old):]...)
}

// setField returns the object raw with the member name set to value: in place if there
// is one, else behind the others.
func setField(raw []byte, name string, value []byte) []byte {
	if old := field(raw, name); old != nil {
		return replaceValue(raw, old, value)
	}
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 {
		return raw
	}
	out := append(make([]byte, 0, len(raw)+len(name)+len(value)+4), raw[:end]...)
	if skipSpace(raw, bytes.IndexByte(raw, '{')+1) < end {
		out = append(out, ',')
	}
	out = append(appendQuoted(out, name), ':')
	return append(append(out, value...), raw[end:]...)
}

// dropField returns the object raw without the members called name. The others are
// kept byte for byte.
func dropField(raw []byte, name string) []byte {
	if field(raw, name) == nil {
		return raw
	}
	done := bytes.IndexByte(raw, '{') + 1
	out := append(make([]byte, 0, len(raw)), raw[:done]...)
	first := true
	for k, v := range fields(raw) {
		end := offsetIn(raw, v) + len(v)
		member := raw[done:end] // with the comma before it
		done = end
		if string(k) == name {
			continue
		}
		if at := skipSpace(member, 0); first && member[at] == ',' {
			member = member[at+1:]
		}
		first = false
		out = append(out, member...)
	}
	return append(out, raw[done:]...)
}
