package toolcall_test

import (
	"fmt"
	"testing"

	"github.com/condensehq/condense/internal/toolcall"
)

func TestGutter(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"  12→x": "12 → x", "12 | foo": "12  |  foo", " 1 | 1 | x": "1  |  1 | x", "3 |": "3  | ", "00012| x": "12 |  x", "12|x": "12 | x", "12\t\tx": "12 \t \tx", "12:   x": "12 :    x",
		"12:x": "12 : x", "12-x": "12 - x", "12:": "12 : ",
		"x 12 | y": "", "12 x": "", "12": "", "": "", "12345678: x": "", "12.5 | x": "",
	} {
		n, sign, text := toolcall.Gutter(line)
		got := fmt.Sprint(n, " ", sign, " ", text)
		if sign == "" {
			if got = ""; n != 0 || text != line {
				t.Errorf("%q: got %d and %q", line, n, text)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
