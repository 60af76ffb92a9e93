// Lists the definitions that tree-sitter sees in .corpus/<set>/<language>/, a file a line, as
// JSON: {path, set, language, error, ms, definitions: [[name, line of the name, first, last, type]]}.
// Markdown is read by commonmark. What counts as a definition is said in docs/outline.md.
import { readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Language, Parser } from 'web-tree-sitter'
import * as commonmark from 'commonmark'

const require = createRequire(import.meta.url)
const only = process.argv.slice(2)
const words = (s) => new Set(s.trim().split(/\s+/))

const functions = words(`function_expression function arrow_function generator_function`)
const isFunction = (n) => n && functions.has(n.type)
const field = (n, name) => n.childForFieldName(name)
const text = (n) => (n ? n.text : '')

// defs: types of nodes that define, with a field for the name. stop: what is not looked into.
const script = {
	defs: words(`function_declaration generator_function_declaration function_signature class_declaration
		abstract_class_declaration class interface_declaration enum_declaration type_alias_declaration internal_module module
		method_definition method_signature abstract_method_signature`),
	stop: words(`statement_block arguments array object_type decorator jsx_element jsx_self_closing_element template_string`),
	find: scriptDefinition,
}
const cfamily = {
	defs: words(`preproc_function_def alias_declaration concept_definition`),
	stop: words(`compound_statement friend_declaration template_instantiation initializer_list parameter_list
		lambda_expression enumerator_list requires_expression static_assert_declaration`),
	find: cDefinition,
}
const languages = {
	go: { defs: words(`function_declaration method_declaration type_spec type_alias method_elem method_spec`), stop: words(`block struct_type`) },
	python: { defs: words(`function_definition class_definition`), stop: new Set(), insideFunction: false, body: words('function_definition') },
	typescript: script,
	tsx: script,
	javascript: script,
	java: {
		defs: words(`class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration method_declaration
			constructor_declaration compact_constructor_declaration annotation_type_element_declaration`),
		stop: words(`block constructor_body object_creation_expression enum_constant`),
	},
	rust: {
		defs: words(`function_item function_signature_item struct_item enum_item union_item trait_item impl_item mod_item type_item associated_type macro_definition`),
		stop: words(`block token_tree const_item static_item macro_invocation`),
		find: (n) => (n.type === 'impl_item' ? [[implName(field(n, 'type')), field(n, 'type')]] : null),
	},
	c: cfamily,
	cpp: cfamily,
	csharp: {
		defs: words(`class_declaration struct_declaration interface_declaration enum_declaration record_declaration record_struct_declaration
			namespace_declaration file_scoped_namespace_declaration method_declaration constructor_declaration property_declaration
			delegate_declaration event_declaration`),
		stop: words(`block arrow_expression_clause equals_value_clause enum_member_declaration_list`),
		find: (n) => {
			switch (n.type) {
				case 'destructor_declaration': return [['~' + text(field(n, 'name')), field(n, 'name')]]
				case 'indexer_declaration': return [['this', field(n, 'parameters')]]
				case 'operator_declaration': return [['operator ' + text(field(n, 'operator')), field(n, 'parameters')]]
				case 'conversion_operator_declaration': return [['operator ' + text(field(n, 'type')), field(n, 'parameters')]]
			}
			return null
		},
	},
	ruby: { defs: words(`class module method singleton_method`), stop: new Set(), body: words('method singleton_method') },
	php: {
		defs: words(`namespace_definition class_declaration interface_declaration trait_declaration enum_declaration function_definition method_declaration`),
		stop: words(`compound_statement_of_function`), body: words('function_definition method_declaration anonymous_function_creation_expression arrow_function'),
	},
	kotlin: {
		defs: new Set(), stop: words(`function_body lambda_literal anonymous_function object_literal getter setter`),
		find: (n) => {
			if (!/^(class_declaration|object_declaration|function_declaration|type_alias)$/.test(n.type)) return null
			const id = n.namedChildren.find((c) => c.type === 'simple_identifier' || c.type === 'type_identifier')
			return id ? [[text(id), id]] : null
		},
	},
	swift: {
		defs: words(`class_declaration protocol_declaration function_declaration protocol_function_declaration typealias_declaration`),
		stop: words(`function_body lambda_literal computed_property willset_didset_block`),
		find: (n) => {
			if (n.type === 'init_declaration') return [['init', n.children.find((c) => c.type === 'init') ?? n]]
			if (n.type === 'class_declaration' && n.children.some((c) => c.type === 'extension')) {
				const t = field(n, 'name')
				return t ? [[text(t).replace(/<.*/s, ''), t]] : null
			}
			return null
		},
	},
}

function implName(t) {
	while (t && /^(generic_type|reference_type)$/.test(t.type)) t = field(t, 'type') ?? t.namedChildren.at(-1)
	if (t && t.type === 'scoped_type_identifier') t = field(t, 'name')
	return text(t).replace(/\s+/g, ' ')
}

function scriptDefinition(n) {
	switch (n.type) {
		case 'variable_declarator': {
			const v = field(n, 'value')
			return (isFunction(v) || v?.type === 'class') && field(n, 'name').type === 'identifier' ? [[text(field(n, 'name')), field(n, 'name')]] : null
		}
		case 'public_field_definition': case 'field_definition': {
			const id = field(n, 'name') ?? field(n, 'property')
			const v = field(n, 'value')
			return isFunction(v) || v?.type === 'class' ? [[text(id), id]] : null
		}
		case 'assignment_expression': {
			const v = field(n, 'right')
			if (!isFunction(v) && v?.type !== 'class') return null
			let l = field(n, 'left')
			if (l.type === 'member_expression') l = field(l, 'property')
			else if (l.type === 'subscript_expression') return [['[' + text(field(l, 'index')) + ']', field(l, 'index')]]
			return [[text(l), l]]
		}
		case 'pair': return isFunction(field(n, 'value')) ? [[text(field(n, 'key')), field(n, 'key')]] : null
		case 'function_declaration': case 'generator_function_declaration': case 'class_declaration': case 'class': {
			const id = field(n, 'name')
			if (id && n.type !== 'class') return [[text(id), id]]
			return n.parent?.type === 'export_statement' ? [['default', n]] : []
		}
		case 'arrow_function': case 'function_expression':
			return n.parent?.type === 'export_statement' ? [['default', n]] : null
	}
	return null
}

// The function of (function () { … })(), called immediately.
function wrapped(n) {
	if (n.type !== 'expression_statement') return null
	let e = n.namedChildren[0]
	while (e && /^(unary_expression|parenthesized_expression)$/.test(e.type)) e = e.namedChildren.at(-1)
	if (e?.type !== 'call_expression') return null
	let f = field(e, 'function')
	if (f?.type === 'member_expression' && /^(call|apply|bind)$/.test(text(field(f, 'property')))) f = field(f, 'object')
	while (f?.type === 'parenthesized_expression') f = f.namedChildren[0]
	return isFunction(f) ? field(f, 'body') : null
}

function declared(d) {
	let isFunc = false
	while (d) {
		switch (d.type) {
			case 'function_declarator': {
				const inner = field(d, 'declarator')
				if (inner?.type === 'parenthesized_declarator' && inner.namedChildren.some((c) => /pointer|reference|block/.test(c.type))) {
					return { id: declared(inner.namedChildren[0]).id, isFunc: false }
				}
				isFunc = true
				d = inner
				break
			}
			case 'parenthesized_declarator': case 'attributed_declarator': d = d.namedChildren[0]; break
			case 'reference_declarator': d = d.namedChildren.at(-1); break
			case 'qualified_identifier': d = field(d, 'name'); break
			case 'template_function': case 'template_method': case 'template_type': d = field(d, 'name'); break
			case 'identifier': case 'field_identifier': case 'type_identifier': case 'destructor_name': case 'operator_name': case 'operator_cast': case 'primitive_type':
				return { id: d, isFunc: isFunc || d.type === 'operator_cast' }
			default: d = field(d, 'declarator')
		}
	}
	return { id: null, isFunc }
}

function cDefinition(n) {
	switch (n.type) {
		case 'function_definition': case 'declaration': case 'field_declaration': case 'type_definition': {
			const out = []
			for (let i = 0; i < n.childCount; i++) {
				if (n.fieldNameForChild(i) !== 'declarator') continue
				const c = n.child(i)
				const { id, isFunc } = declared(c)
				if (id && c.type !== 'init_declarator' && (isFunc || n.type === 'type_definition')) out.push([(id.type === 'operator_cast' ? text(id).replace(/\s*\(.*$/s, '') : text(id)).replace(/\s+/g, ' '), id])
			}
			return out.length ? out : null
		}
		case 'struct_specifier': case 'class_specifier': case 'union_specifier': case 'enum_specifier': case 'namespace_definition': {
			let id = field(n, 'name')
			if (!id || !field(n, 'body')) return null
			if (id.type === 'template_type' || id.type === 'qualified_identifier') {
				while (id && id.type !== 'type_identifier') id = field(id, 'name')
			}
			return id ? [[text(id), id]] : null
		}
	}
	return null
}

function definitions(root, rules) {
	const out = []
	const visit = (n, wrapper) => {
		const found = rules.find?.(n) ?? (rules.defs.has(n.type) && field(n, 'name') ? [[text(field(n, 'name')), field(n, 'name')]] : [])
		for (const [name, id] of found) {
			out.push([name, id.startPosition.row + 1, n.startPosition.row + 1, n.endPosition.row + (n.endPosition.column > 0 ? 1 : 0), n.type])
		}
		const inside = rules === script ? wrapped(n) : null
		if (inside) {
			if (inside.type === 'statement_block') for (const c of inside.namedChildren) visit(c)
			return
		}
		if (rules.body?.has(n.type)) return
		if (rules === script && (isFunction(n) || (n.type === 'statement_block' && /function|method/.test(n.parent?.type ?? '')))) return
		for (const c of n.namedChildren) {
			if (c.type === 'statement_block' && rules === script && !/function|method/.test(n.type)) visit(c)
			else if (!rules.stop.has(c.type)) visit(c)
		}
	}
	visit(root)
	return out
}

await Parser.init()
const grammars = { csharp: 'c_sharp' }
const jobs = readdirSync('.corpus').flatMap((set) => readdirSync(join('.corpus', set)).map((language) => [set, language]))
for (const [set, language] of jobs) {
	if (only.length && !only.includes(language)) continue
	const dir = join('.corpus', set, language)
	let read
	if (language === 'markdown') {
		read = (src) => {
			const root = new commonmark.Parser().parse(src.replace(/^---\r?\n[^]*?\n---\r?\n/, (m) => m.replace(/[^\n]/g, '')))
			const out = []
			for (let n = root.firstChild; n; n = n.next) {
				if (n.type === 'heading') out.push(['', n.sourcepos[0][0], n.sourcepos[0][0], n.sourcepos[1][0], 'heading'])
			}
			return { error: false, definitions: out }
		}
	} else {
		const grammar = grammars[language] ?? language
		const parser = new Parser()
		parser.setLanguage(await Language.load(require.resolve(`tree-sitter-wasms/out/tree-sitter-${grammar}.wasm`)))
		read = (src) => {
			const tree = parser.parse(src)
			const answer = { error: tree.rootNode.hasError, definitions: definitions(tree.rootNode, languages[language]) }
			tree.delete()
			return answer
		}
	}
	for (const name of readdirSync(dir).sort()) {
		const path = join(dir, name)
		const src = readFileSync(path, 'utf8')
		if (Buffer.byteLength(src) > 200_000) continue
		const begin = performance.now()
		const answer = read(src)
		process.stdout.write(JSON.stringify({ path, set, language, ms: Math.round((performance.now() - begin) * 100) / 100, ...answer }) + '\n')
	}
}
