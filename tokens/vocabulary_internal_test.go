package tokens

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"flag"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "make the vocabularies again")

// TestVocabulariesAreTiktokens: the files have the tokens of tiktoken in the order of their ranks. With -update they are made.
func TestVocabulariesAreTiktokens(t *testing.T) {
	for _, name := range []string{O200kBase, CL100kBase} {
		text, err := assets.Assets.ReadFile(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		rank := 0
		for line := range strings.Lines(string(text)) {
			code, number, _ := strings.Cut(strings.TrimSpace(line), " ")
			token, err := base64.StdEncoding.DecodeString(code)
			if err != nil || len(token) > 255 || number != strconv.Itoa(rank) {
				t.Fatalf("%s: token %d is %q with rank %s (%v)", name, rank, token, number, err)
			}
			want.WriteByte(byte(len(token)))
			want.Write(token)
			rank++
		}
		if *update {
			var file bytes.Buffer
			z, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := z.Write(want.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("vocabularies/"+name+".gz", file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue // it is embedded the next time
		}
		got, err := readVocabulary(name)
		if err != nil || got != want.String() {
			t.Errorf("%s is not the vocabulary of tiktoken (%v): run go test ./tokens -run Vocabularies -update", name, err)
		}
	}
}

// TestRanks: tiktoken-go gets from us what its own loader gives it.
func TestRanks(t *testing.T) {
	for _, name := range []string{O200kBase, CL100kBase} {
		want, err := loader.NewOfflineLoader().LoadTiktokenBpe(name + ".tiktoken")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Ranks(name); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %d ranks (%v), want the %d of tiktoken", name, len(got), err, len(want))
		}
	}
	if _, err := Ranks(Chars4); err == nil {
		t.Error("chars4 has ranks")
	}
}
