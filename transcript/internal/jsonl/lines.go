package jsonl

import (
	"bytes"
	"iter"
)

// Lines yields the Lines of data with their numbers, the first is 1. A line holds
// neither its "\n" nor a "\r" before it. Empty Lines are yielded too.
func Lines(data []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		for n, i := 1, 0; i < len(data); n++ {
			end, next := len(data), len(data)
			if at := bytes.IndexByte(data[i:], '\n'); at >= 0 {
				end, next = i+at, i+at+1
			}
			if end > i && data[end-1] == '\r' {
				end--
			}
			if !yield(n, data[i:end]) {
				return
			}
			i = next
		}
	}
}
