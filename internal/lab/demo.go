package lab

import (
	"embed"
	"fmt"
	"io"
	"path"
	"strings"
)

// The sessions of the demonstration, converted and with names replaced; demo/NOTICE.md
// names their sources and licences.
//
//go:embed demo/*.json.gz
var demoFiles embed.FS

// Demo returns the sessions that come with the program: small, real, of several agents.
// They show how a comparison looks. They are too few to choose a strategy by.
func Demo() []Item {
	items, err := demo("")
	if err != nil {
		panic(err) // the files are part of the program
	}
	return items
}

// demo returns the sessions of the demonstration whose name begins with prefix.
func demo(prefix string) ([]Item, error) {
	entries, err := demoFiles.ReadDir("demo")
	if err != nil {
		return nil, err
	}
	var out []Item
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		out = append(out, Item{Name: "demo:" + name, Open: func() (io.ReadCloser, error) {
			return demoFiles.Open(path.Join("demo", name))
		}})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("demo:%s: no such session", prefix)
	}
	return out, nil
}
