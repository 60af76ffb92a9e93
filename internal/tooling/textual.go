package tooling

import (
	"iter"
	"maps"
	"strings"
)

// textual are the tools that Roo-Code, Cline and Kilo call in their text protocol, as
// elements. Other elements in an assistant's text are prose.
var textual = func() map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(`read_file write_to_file apply_diff insert_content search_and_replace
		replace_in_file edit_file list_files search_files list_code_definition_names codebase_search
		execute_command browser_action use_mcp_tool access_mcp_resource ask_followup_question
		attempt_completion switch_mode new_task update_todo_list fetch_instructions generate_image
		run_slash_command new_rule report_bug condense plan_mode_respond load_mcp_documentation`) {
		m[n] = true
	}
	return m
}()

// Textual reports whether a tool of this name is called in texts.
func Textual(name string) bool { return textual[name] }

// TextualNames yields the names of the tools that are called in texts, in no order.
func TextualNames() iter.Seq[string] { return maps.Keys(textual) }
