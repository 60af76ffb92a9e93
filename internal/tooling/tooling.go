// Package tooling knows the tools of coding agents: what family a tool belongs to, and
// which files, lines and commands a call is about. It knows names and argument keys of the
// agents whose sessions are public; of any other tool it says that it does not know it.
package tooling

import "strings"

// A Family is a kind of tool.
type Family string

// The families.
const (
	Unknown  Family = ""
	Read     Family = "read"     // shows a file or a part of it
	Write    Family = "write"    // writes a whole file
	Edit     Family = "edit"     // changes a part of a file
	List     Family = "list"     // names files
	Search   Family = "search"   // finds text in files
	Command  Family = "command"  // runs a program
	Web      Family = "web"      // fetches or searches the web
	Plan     Family = "plan"     // keeps a list of what to do
	Ask      Family = "ask"      // asks the user: what it answers is what the user said
	Delegate Family = "delegate" // gives work to another agent, which reports
	Done     Family = "done"     // says that something is done, or hands it on
)

// families names the tools of each family, in lower case without separators, so that
// read_file, ReadFile and readFile are one. Sources: the tool definitions of Claude Code,
// Codex, Cline, Roo-Code, Kilo, OpenHands, SWE-agent, Gemini CLI, Cursor, Copilot, opencode,
// pi and aider, and their sessions.
var families = map[Family]string{
	Read:     "read readfile readfiles readmanyfiles view viewfile open openfile fsread cat notebookread getfile getfilecontents readtextfile goto",
	Write:    "write writefile writetofile writefiles createfile create createnewfile fswrite newfile",
	Edit:     "edit editfile multiedit applydiff applypatch strreplace strreplaceeditor strreplacebasededittool strreplacebasededit insertcontent insertcodeblock searchandreplace searchreplace replace replaceinfile notebookedit editnotebook patch",
	List:     "listfiles listdir listdirectory ls glob findfiles findfile filesearch globfilesearch listcodedefinitionnames",
	Search:   "grep search searchfiles searchfile searchdir grepsearch searchfilecontent codebasesearch codesearch ripgrep rg",
	Command:  "bash shell executecommand execcommand executebash runcommand runinterminal runterminalcmd runshellcommand localshell terminal powershell execute exec localshellcall writestdin runpython executeipythoncell ipython",
	Web:      "webfetch websearch fetch browseraction fetchurl googlewebsearch browser",
	Plan:     "todowrite todoread updatetodolist updateplan taskcreate taskupdate tasklist writetodos",
	Ask:      "askfollowupquestion askuserquestion askuser planmoderespond",
	Delegate: "task agent spawnagent dispatchagent delegate delegatetask runsubagent invokesubagent callagent agentoutputtool taskoutput",
	Done:     "attemptcompletion finish submit newtask switchmode exitplanmode enterplanmode think",
}

var byName = func() map[string]Family {
	m := map[string]Family{}
	for f, names := range families {
		for n := range strings.FieldsSeq(names) {
			m[n] = f
		}
	}
	return m
}()

// FamilyOf returns the family of the tool called name. The prefix of a server, as in
// mcp__files__read_file, is ignored.
func FamilyOf(name string) Family {
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+2:]
	}
	if f, ok := byName[name]; ok {
		return f
	}
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z':
			b.WriteByte(c + 'a' - 'A')
		case c == '_', c == '-', c == '.', c == ' ', c == '/':
		default:
			b.WriteByte(c)
		}
	}
	return byName[b.String()]
}
