package core

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Handle names the content of p, for those who leave it out and want it to be found
// again: ten hexadecimal digits of a SHA-256. Equal content has the same handle wherever
// it stands, in whatever format it was stored, and whatever was condensed since; that is
// why neither the ID of a call nor that of a message is part of it. Of 100,000 contents
// two share a handle with a probability of 0.5 %; whoever looks one up must expect
// several.
func Handle(p Part) string {
	h := sha256.New()
	hashPart(h, p)
	return hex.EncodeToString(h.Sum(nil)[:5])
}

func hashPart(h hash.Hash, p Part) {
	fields := func(kind byte, texts ...string) {
		h.Write([]byte{kind})
		for _, t := range texts {
			var length [8]byte // so that no two lists of texts are the same bytes
			binary.BigEndian.PutUint64(length[:], uint64(len(t)))
			h.Write(length[:])
			h.Write([]byte(t))
		}
	}
	switch p := p.(type) {
	case Text:
		fields('t', string(p))
	case ToolCall:
		fields('c', p.Name, p.Args)
	case ToolResult:
		fields('r')
		for _, c := range p.Content {
			hashPart(h, c)
		}
	case Image:
		fields('i', p.MediaType, p.Data, p.URL)
	case Reasoning:
		fields('s', p.Text, p.Signature, p.Encrypted)
	case Opaque:
		fields('o', p.Kind, p.JSON)
	}
}
