package outline

import (
	"path"
	"strings"
)

// A language is what the scanners need to know of one.
type language struct {
	exts string // extensions with the dot, separated by spaces
	scan func(*language, string) []Definition
	is   traits
}

// languages is read only.
var languages = map[string]*language{
	"go":         {".go", scanGo, backquoteRaw},
	"rust":       {".rs", scanKeywords(rustGrammar), nestedComments | lifetimes | multiline | rawHashes},
	"kotlin":     {".kt .kts", scanKeywords(kotlinGrammar), nestedComments | tripleQuotes | dollarCode | backquoteName},
	"swift":      {".swift", scanKeywords(swiftGrammar), nestedComments | tripleQuotes | hashQuotes | parenCode | backquoteName},
	"php":        {".php", scanKeywords(phpGrammar), hashComments | attributes | multiline | multiline1 | hereDocs | tags},
	"python":     {".py .pyi", scanIndented(pythonLines, pythonHead, ""), 0},
	"ruby":       {".rb .rake .gemspec", scanIndented(rubyLines, rubyHead, "end"), 0},
	"markdown":   {".md .markdown", scanMarkdown, 0},
	"c":          {".c .h", scanCFamily("c"), directives},
	"cpp":        {".cc .cpp .cxx .hpp .hh .hxx .ipp .inl .tpp", scanCFamily("cpp"), directives | rawParens},
	"java":       {".java", scanCFamily("java"), tripleQuotes},
	"javascript": {".js .jsx .mjs .cjs", scanScript, templates | regexps | jsx},
	"typescript": {".ts .mts .cts", scanScript, templates | regexps},
	"tsx":        {".tsx", scanScript, templates | regexps | jsx},
	"csharp":     {".cs", scanCFamily("csharp"), directives | tripleQuotes | verbatim},
}

var byExtension = func() map[string]string {
	m := make(map[string]string)
	for name, l := range languages {
		for ext := range strings.FieldsSeq(l.exts) {
			m[ext] = name
		}
	}
	return m
}()

// Language names the language of a file, in lower case ("go", "csharp", "markdown"), by
// the extension of its name. It is "" for files that [Definitions] cannot fold.
func Language(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	return byExtension[strings.ToLower(path.Ext(name))]
}

var (
	rustGrammar = &grammar{
		functions: kinds("fn"),
		types:     kinds("struct enum union trait impl mod macro_rules=macro"),
		plain:     kinds("type"),
		modifiers: set("pub async unsafe extern default const crate auto"),
	}
	kotlinGrammar = &grammar{
		functions: kinds("fun"),
		types:     kinds("class interface object"),
		plain:     kinds("typealias=type"),
		modifiers: set(`public private protected internal open abstract final sealed data inner enum annotation
			inline noinline crossinline suspend tailrec operator infix external override lateinit const
			expect actual value companion`),
		lines: true,
	}
	swiftGrammar = &grammar{
		functions: kinds("func init deinit subscript"),
		types:     kinds("class struct enum protocol extension actor"),
		plain:     kinds("typealias=type"),
		modifiers: set(`public private fileprivate internal open final static class override mutating nonmutating
			required convenience dynamic lazy weak unowned indirect prefix postfix infix optional isolated
			nonisolated async distributed`),
		lines: true,
	}
	phpGrammar = &grammar{
		functions: kinds("function"),
		types:     kinds("class interface trait enum namespace"),
		modifiers: set("public private protected static abstract final readonly var"),
		blocks:    true,
	}
)
