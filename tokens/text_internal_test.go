package tokens

import (
	"math/rand/v2"
	"strings"
)

// Atoms are what decides how the patterns of the encodings split: a text made of them
// goes through every alternative and the borders between them.
var Atoms = []string{
	// White space: what may precede a word, line ends, and what is neither.
	" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u3000", "\u200b", "\ufeff",
	// Contractions, and what only looks like them.
	"'s", "'S", "'t", "'T", "'re", "'RE", "'rE", "'ve", "'VE", "'m", "'ll", "'Ll", "'lL", "'d", "'D", "'", "''", "'x", "'l", "'r", "'v", "’s", "'ſ", "'ſs", "'K", "'\u0345", "'É",
	// Letters: lower, upper and title case, without case, modifiers.
	"a", "b", "e", "hello", "World", "HTTP", "XMLHttpRequest", "iPhone", "A", "B", "Z", "é", "É", "ß", "ǅ", "ǈ", "ᾈ", "ʰ", "ˀ", "ー", "々", "ª", "º", "あ", "カ", "中", "文字", "한", "Ω", "Ж", "д", "ا", "ש", "ก", "𝐀", "𝒶", "𐐀", "𐐨", "ſ", "İ", "ı", "K",
	// Marks: combining, spacing, enclosing.
	"\u0301", "\u0308", "\u093f", "\u20dd", "\u0e31", "\ufe0f", "\U000e0100", "\u0345",
	// Numbers: digits, letters, others.
	"0", "1", "12", "123", "1234", "٣", "Ⅷ", "½", "²", "①", "〇", "𝟘",
	// Punctuation, symbols, controls.
	".", ",", "!", "?", "/", "//", "/*", "\\", "-", "--", "_", "__", "(", ")", "{", "}", "();", "\"", "`", "@", "#", "$", "€", "+", "=", "<", ">", "|", "~", "^", "…", "—", "«", "。", "、", "\x00", "\x00\x00", "\x01", "\x1b[0m", "\x7f", "\u00ad", "\ue000",
	// Emoji: with selectors, modifiers, joiners, flags.
	"😀", "👍🏽", "👨‍👩‍👧", "🇩🇪", "❤️", "1️⃣",
	// The text of special tokens; here it is plain text.
	"<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|im_start|>",
	// Characters newer than many tables, unassigned ones, and noncharacters.
	"\u1c8a", "\u0c5d", "\U0002ebf0", "\U0001fae9", "\u0378", "\U000e0080", "\ufffe", "\uffff", "\U0010ffff", "\ufffd",
	// Not UTF-8: stray bytes, cut and overlong characters, a surrogate.
	"\xff", "\x80", "\xc3", "\xe4\xb8", "\xf0\x9f\x98", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
}

// RandomText returns a text of up to n atoms and single characters. It has few different
// ones, so that they meet in many ways.
func RandomText(r *rand.Rand, n int) string {
	some := make([]string, 2+r.IntN(8))
	for i := range some {
		switch r.IntN(10) {
		case 0:
			some[i] = string(rune(' ' + r.IntN(95)))
		case 1:
			some[i] = string(r.Int32N(0x3000))
		case 2:
			some[i] = string(r.Int32N(0x110000))
		case 3:
			some[i] = string([]byte{byte(r.IntN(256))})
		default:
			some[i] = Atoms[r.IntN(len(Atoms))]
		}
	}
	var b strings.Builder
	for range 1 + r.IntN(n) {
		atom := some[r.IntN(len(some))]
		if r.IntN(16) == 0 {
			atom = strings.Repeat(atom, 1+r.IntN(12))
		}
		b.WriteString(atom)
	}
	return b.String()
}

// Samples are texts of the kinds that agents read and write.
var Samples = []string{
	"Hello world",
	"We've said it's HERE'S what they'll do; I'd've DON'T y'all.",
	"func (m *Map[K, V]) Get(k K) (v V, ok bool) {\n\tm.mu.RLock()\n\tdefer m.mu.RUnlock()\n\tv, ok = m.m[k]\n\treturn\n}\n",
	"\t\tif err != nil {\r\n\t\t\treturn fmt.Errorf(\"open %q: %w\", name, err)\r\n\t\t}\r\n",
	`{"id":"toolu_01A09q90qw90lq917835lq9","name":"read_file","input":{"path":"src/main.rs","lines":[1,250]}}`,
	"2024-05-17T08:41:09.123456Z ERROR [worker-3] conn 0x7f3a9c: read tcp 10.0.0.1:5432->10.0.0.2:41782: i/o timeout\n",
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
	"d41d8cd98f00b204e9800998ecf8427e  -\n",
	"吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
	"天地玄黃宇宙洪荒日月盈昃辰宿列張寒來暑往秋收冬藏",
	"나는 학생입니다. Ich heiße Müller-Lüdenscheidt. Съешь же ещё этих мягких французских булок.",
	"यह एक परीक्षण है। สวัสดีชาวโลก مرحبا بالعالم",
	"    \n\n\n  \t  x   y\n   \r\n  ",
	"ABCdefGHI AあB あBCd ͏ABC 'sA 12345678 /usr/local//bin/\n\n",
}
