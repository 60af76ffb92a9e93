package rawjson

import (
	"bytes"
)

// ReplaceValue returns raw with the value old, a part of it, replaced by value.
func ReplaceValue(raw, old, value []byte) []byte {
	at := Offset(raw, old)
	out := make([]byte, 0, len(raw)-len(old)+len(value))
	return append(append(append(out, raw[:at]...), value...), raw[at+len(old):]...)
}

// SetField returns the object raw with the member name set to value: in place if there
// is one, else after the others.
func SetField(raw []byte, name string, value []byte) []byte {
	if old := Field(raw, name); old != nil {
		return ReplaceValue(raw, old, value)
	}
	end := bytes.LastIndexByte(raw, '}')
	if end < 0 {
		return raw
	}
	out := make([]byte, 0, len(raw)+len(name)+len(value)+4)
	if SkipSpace(raw, bytes.IndexByte(raw, '{')+1) < end {
		end = len(bytes.TrimRight(raw[:end], " \t\r\n")) // the space stays at the end, so that CutField restores every byte
		out = append(append(out, raw[:end]...), ',')
	} else {
		out = append(out, raw[:end]...)
	}
	out = append(AppendQuote(out, name), ':')
	return append(append(out, value...), raw[end:]...)
}

// DropField returns the object raw without the members called name. The others are
// kept byte for byte.
func DropField(raw []byte, name string) []byte {
	if Field(raw, name) == nil {
		return raw
	}
	done := bytes.IndexByte(raw, '{') + 1
	out := append(make([]byte, 0, len(raw)), raw[:done]...)
	first := true
	for k, v := range Fields(raw) {
		end := Offset(raw, v) + len(v)
		member := raw[done:end] // with the comma before it
		done = end
		if string(k) == name {
			continue
		}
		if at := SkipSpace(member, 0); first && member[at] == ',' {
			member = member[at+1:]
		}
		first = false
		out = append(out, member...)
	}
	return append(out, raw[done:]...)
}

// CutField returns the object raw, which has no space around it, without the members called name. A member is removed
// with the comma and the space before it, the first member with those after it.
func CutField(raw []byte, name string) []byte {
	if Field(raw, name) == nil {
		return raw
	}
	begin := SkipSpace(raw, 1)
	out := append([]byte(nil), raw[:begin]...)
	kept := false
	last := begin // the end of the member before
	for at := begin; at < len(raw) && raw[at] == '"'; {
		key := raw[at:skipString(raw, at)]
		value := SkipSpace(raw, SkipSpace(raw, at+len(key))+1)
		end := SkipValue(raw, value)
		if Unquote(key) != name {
			if kept {
				out = append(out, raw[last:at]...)
			}
			out = append(out, raw[at:end]...)
			kept = true
		}
		last = end
		if at = SkipSpace(raw, end); raw[at] == ',' {
			at = SkipSpace(raw, at+1)
		}
	}
	return append(out, raw[last:]...)
}

// Array returns values as an array.
func Array[T ~[]byte](values []T) []byte {
	size := len("[]") + len(values)
	for _, v := range values {
		size += len(v)
	}
	out := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}
