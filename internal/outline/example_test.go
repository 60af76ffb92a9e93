package outline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/internal/outline"
)

func ExampleFold() {
	fmt.Print(outline.Fold("cart.py", `class Cart:
    def __init__(self, owner):
        self.items = []

    def total(
        self, tax=0.2,
    ):
        return sum(self.items) * (1 + tax)
`))
	// Output:
	// # cart.py
	// 1--8 | class Cart:
	// 2--3 |     def __init__(self, owner):
	// 5--8 |     def total( self, tax=0.2, ):
}

func ExampleFiles() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for name, text := range map[string]string{
		"main.go":    "package main\n\nfunc main() {\n\trun()\n}\n",
		"key.go":     "package main\n\nconst key = 1\n",
		".gitignore": "key.go\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			fmt.Println(err)
			return
		}
	}
	folded, err := outline.Files(context.Background(), []string{"main.go", "key.go"}, outline.Options{Root: dir})
	fmt.Println(folded.Blocks[0].Text, err)
	for _, s := range folded.Skipped {
		fmt.Println("skipped", s.Path, s.Err)
	}
	// Output:
	// <system-reminder>
	// ## File Context: main.go
	// # main.go
	// 3--5 | func main()
	//
	// </system-reminder> <nil>
	// skipped key.go ignored by .gitignore: key.go
}
