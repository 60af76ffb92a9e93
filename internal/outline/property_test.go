package outline_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/testkit"
)

// languages has one file name for each language.
var languages = []string{
	"a.go", "a.py", "a.ts", "a.tsx", "a.js", "a.java", "a.rs", "a.c", "a.cpp", "a.cs", "a.rb", "a.md", "a.kt", "a.swift", "a.php",
}

// check holds definitions against what Definitions promises.
func check(src string, defs []outline.Definition) error {
	lines := strings.Count(src, "\n") + 1
	if strings.HasSuffix(src, "\n") {
		lines--
	}
	var open []outline.Definition
	for i, d := range defs {
		if d.Start < 1 || d.Body <= d.Start || d.Body > d.End+1 || d.End > lines {
			return fmt.Errorf("definition %d of %d lines: %+v", i, lines, d)
		}
		if d.Depth < 0 || d.Kind == "" {
			return fmt.Errorf("definition %d: %+v", i, d)
		}
		if i > 0 && d.Start < defs[i-1].Start {
			return fmt.Errorf("definition %d starts before the one before: %+v", i, d)
		}
		for len(open) > 0 && open[len(open)-1].End < d.Start {
			open = open[:len(open)-1]
		}
		if len(open) > 0 && d.End > open[len(open)-1].End {
			return fmt.Errorf("definition %d ends after the one around it: %+v", i, d)
		}
		open = append(open, d)
	}
	return nil
}

// TestHostile gives every language texts that make parsers slow or deep.
func TestHostile(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const n = 30_000
	for name, src := range hostile(n) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range languages {
				lang := outline.Language(file)
				if err := check(src, outline.Definitions(lang, src)); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				testkit.Linear(t, n, func(n int) func() {
					src := hostile(n)[name]
					return func() { outline.Definitions(lang, src) }
				})
			}
		})
	}
}

// hostile returns texts of about n bytes.
func hostile(n int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(alphabet string) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[rng.IntN(len(alphabet))]
		}
		return string(b)
	}
	return map[string]string{
		"round brackets":     fill("("),
		"square brackets":    fill("["),
		"braces":             fill("{"),
		"closing":            fill("}"),
		"mixed brackets":     fill("{["),
		"crossed brackets":   fill("{(") + fill("})"),
		"quotes":             fill(`"'`),
		"back quotes":        fill("`${"),
		"nested templates":   fill("`${a"),
		"less":               fill("a<"),
		"less on lines":      fill("a<\n"),
		"angles":             fill("a<b>"),
		"sum":                fill("a+"),
		"elements":           "x = " + fill("<a "),
		"open elements":      "x = " + fill("<a>"),
		"elements of code":   "x = " + fill("<a>{"),
		"slashes":            "x = " + fill("/ [ = "),
		"regexps":            fill("=/["),
		"comments":           fill("/*"),
		"here documents":     fill("<<<A\n"),
		"here documents 2":   fill("x <<~A\n"),
		"raw":                fill(`R"x(`),
		"raw hashes":         fill(`r#"`),
		"directives":         fill("#if\n"),
		"directives 2":       fill("#if 0\n#else\n{\n#else\n"),
		"classes":            fill("class a { "),
		"classes 2":          fill("class a\n"),
		"functions":          fill("function a("),
		"functions 2":        fill("function a(){"),
		"arrows":             fill("a=>"),
		"arrow types":        fill("a = (b): c => "),
		"arrow types 2":      "const a = " + fill("(b): ("),
		"assignments":        fill("a=b="),
		"objects":            "x = " + fill("{a:"),
		"extends":            fill("a extends "),
		"types":              "type a = " + fill("b extends c ? d : "),
		"templates of C++":   fill("template<a "),
		"operators":          fill("operator<"),
		"typedefs":           fill("typedef (*"),
		"typedefs 2":         fill("typedef a(b)"),
		"macros":             fill("MACRO(x)\n"),
		"annotations":        fill("@a("),
		"annotations 2":      fill("@a.b "),
		"attributes":         fill("#["),
		"impls":              fill("impl<a "),
		"commas":             fill("a,"),
		"definitions":        fill("def a(\n"),
		"deep definitions":   deep(int(math.Sqrt(float64(12 * n)))),
		"headings":           fill("#"),
		"headings 2":         fill("# a\n"),
		"fences":             fill("```\n"),
		"deep headings":      fill("a\n=\n"),
		"percents":           fill("%w["),
		"string code":        fill(`"#{`),
		"string code 2":      fill(`$"{`),
		"string code 3":      fill(`"\(`),
		"interfaces":         fill("interface a { b(): "),
		"get set":            "class a {" + fill("get "),
		"modifiers":          fill("public "),
		"blank":              fill(" "),
		"lines":              fill("\n"),
		"zero":               fill("\x00"),
		"invalid":            fill("\xff"),
		"base64":             random("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
		"brackets at random": random("(){}[]<>;,\n"),
		"code at random":     random("(){}[]<>;,\n \"'`/*#@$%=:a1 defclass"),
		"JSON":               fill(`{"a": [1, "b", null, {"c": "d\n"}]},` + "\n"),
		"prose":              fill("It's a fact that class action isn't fun (or so they say).\n"),
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "class a:\n")
	}
	return b.String()
}

func FuzzDefinitions(f *testing.F) {
	for _, s := range samples(f) {
		for i, file := range languages {
			if outline.Language(file) == outline.Language(s.file) {
				f.Add(i, s.src)
			}
		}
	}
	f.Fuzz(func(t *testing.T, i int, src string) {
		file := languages[uint(i)%uint(len(languages))]
		if err := check(src, outline.Definitions(outline.Language(file), src)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		outline.Fold(file, src)
	})
}
