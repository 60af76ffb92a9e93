package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/condensehq/condense/internal/testkit/peers"
)

// TestAhead: who is ahead is what bench/second says, for few and many projects with several sessions.
func TestAhead(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		peers.Missing(t, "who is ahead is not compared", "there is no python3 in PATH")
	}
	r := rand.New(rand.NewPCG(1, 1))
	type pair struct {
		Session string
		A, B    float64
	}
	var cases [][]pair
	var own []int
	for i := range 30 {
		v, shift := values{}, 0.4*r.NormFloat64()
		var c []pair
		for k := range 4 + i {
			p := pair{fmt.Sprintf("x/%c%d--%d.json", 'a'+k%17, k%17, k), r.NormFloat64(), 0}
			p.B = p.A + shift + 0.5*r.NormFloat64()
			v.put("a", p.Session, "", p.A)
			v.put("b", p.Session, "", p.B)
			c = append(c, p)
		}
		got, ok := v.less("a", "b")
		if got.decide(); !ok || got.Low > got.Mean || got.High < got.Mean {
			t.Errorf("%+v", got)
		}
		cases, own = append(cases, c), append(own, got.Ahead)
	}
	data, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	const program = `import json, sys; sys.path.insert(0, "../second"); import second
cases = json.loads(sys.argv[1])
print([second.ahead({(p["Session"], 0): p["A"] for p in c}, {(p["Session"], 0): p["B"] for p in c}) for c in cases])`
	out, err := exec.CommandContext(t.Context(), python, "-B", "-c", program, string(data)).CombinedOutput()
	var theirs []int
	if err == nil {
		err = json.Unmarshal(out, &theirs)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := map[int]bool{}
	for i, n := range own {
		seen[n] = true
		if theirs[i] != n {
			t.Errorf("case %d: %d, the other implementation %d", i, n, theirs[i])
		}
	}
	if len(seen) != 3 {
		t.Errorf("only the verdicts %v occur", seen)
	}
}
