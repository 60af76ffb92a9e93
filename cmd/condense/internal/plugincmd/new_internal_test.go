package plugincmd

import (
	"testing"
)

// A release needs no checkout.
func TestRequire(t *testing.T) {
	for _, tt := range []struct {
		version string
		release bool
	}{
		{"v0.1.0", true},
		{"v0.0.1", true},
		{"v1.2.3", true},
		{"v10.20.30-rc.1", true},
		{"v1.0.0-beta2", true},
		{"v0.0.0", false},
		{"(devel)", false},
		{"v0.0.0-20260102150405-0123456789ab", false},
		{"v1.2.4-0.20260102150405-0123456789ab", false},
		{"v1.2.3+dirty", false},
		{"", false},
	} {
		n := &naming{Version: "v0.0.0"}
		if err := n.require(tt.version, ""); err != nil {
			t.Errorf("%q: %v", tt.version, err)
			continue
		}
		if tt.release && (n.Version != tt.version || n.Replace != "") {
			t.Errorf("%q: got %+v, want that version and no checkout", tt.version, n)
		}
		if !tt.release && (n.Version != "v0.0.0" || n.Replace == "") {
			t.Errorf("%q: got %+v, want a checkout", tt.version, n)
		}
	}
}
