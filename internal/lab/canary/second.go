package canary

// second was written after a strategy had been tuned on families, by an author who did not know the words that the
// strategy looks for. It differs from families as people differ from each other: chat in lower case, lists,
// questions, quoted and indirect speech, other languages. It measures how far a change generalizes beyond the texts
// that it was made with: do not tune on it, and if you have, write a third.
var second = []family{
	{Rule, []string{
		"The folder legacy/«v» stays exactly as it is; work around it.", "hands off legacy/«v» pls, ops owns that one", "My boss said that nobody edits legacy/«v» while the audit runs.",
	}, "Scratch what I said about the audit: the folder that stays exactly as it is is legacy/«v».", "audit moved on, they're looking at legacy/«v» this week so that's the one to leave in peace"}, //nolint:dupword // as people say it
	{Rule, []string{
		"commits only ever go to «v», is that clear?", "Could you make sure that commits end up on «v» and nowhere else?", "Branch policy:\n- commits land on «v»\n- whatever lands elsewhere gets reverted",
	}, "commits go to «v» as of today", "we froze that branch, work lands on «v» going forward"},
	{Rule, []string{
		"Legal told us: no telemetry leaves the box unless it goes through «v».", "telemetry goes through «v» or it doesn't go at all", "As legal put it, \"telemetry passes «v» first, full stop\".",
	}, "Legal came back: telemetry goes through «v» as of this week.", "the proxy got swapped out, anything that phones home has to pass «v»"},
	{Rule, []string{
		"Finger weg von module/«v».", "An module/«v» wird nichts geändert, das macht das andere Team.", "module/«v» bleibt wie es ist, verstanden?",
	}, "Korrektur: an module/«v» wird nichts geändert, nicht an dem vorhin genannten.", "Das andere Team hat getauscht, die kümmern sich jetzt um module/«v», also lass das in Ruhe."},
	{Rule, []string{
		"Los cambios en la tabla «v» están prohibidos hasta el lunes.", "prohibido tocar la tabla «v»", "A la tabla «v» ni te acerques, ¿vale?",
	}, "Corrijo: la tabla prohibida es «v».", "El lunes cambió el alcance: la que está bloqueada es «v», déjala en paz."},
	{Rule, []string{
		"不要修改 «v» 目录下的文件。", "«v» 目录下的文件谁都别动。", "请注意，«v» 目录是只读的，别改。",
	}, "更正：不要修改的是 «v» 目录下的文件，之前说的那个可以改了。", "权限调整了，现在锁住的目录是 «v»。"},
	{Rule, []string{
		"Each time you add a migration, write its twin into rollback/«v» too.", "a migration without its twin in rollback/«v» is not finished", "migrations come in pairs: one up, its twin in rollback/«v»",
	}, "the twin of a migration belongs in rollback/«v» now, I reorganised", "I renamed the place for down scripts, put them into rollback/«v»"},
	{Rule, []string{
		"Whoever logs an email address of a client gets me fired, mask them with «v»().", "client emails go through «v»() before they hit any log line", "quick reminder that emails of clients are masked with «v»() in logs",
	}, "client emails are masked with «v»() since the refactoring", "the masking helper got a different name, it's «v»() that hides addresses"},
	{Rule, []string{
		"before anything ships, «v» gets a look at it", "production deploys: «v» nods first, then you press the button", "Nothing ships to production unless «v» nodded, she told me.",
	}, "«v» gets a look at it before anything ships, the other one is on leave", "the release captain rotated, the nod comes from «v» this sprint"},

	{Constraint, []string{
		"max payload = «n» bytes", "payloads: «n» bytes tops", "The device drops a payload larger than «n» bytes.",
	}, "update: max payload = «n» bytes", "new firmware, the device now takes messages of «n» bytes and drops what's bigger"},
	{Constraint, []string{
		"memory ceiling is «n» MiB, the pod gets killed above that", "the pod has «n» MiB of memory, period", "Is it possible to stay under «n» MiB of memory? The pod gets killed otherwise.",
	}, "memory ceiling is «n» MiB now", "they resized the pod, it gets killed at «n» MiB"},
	{Constraint, []string{
		"Budget for tokens per call: «n», my finance people watch that.", "per call we pay for «n» tokens, that's the cap", "finance said \"«n» tokens per call and not one more\"",
	}, "finance raised it: «n» tokens per call", "good news about money, a request may burn «n» tokens"},
	{Constraint, []string{
		"Target hardware: «n» KB flash, the image has to fit.", "flash is «n» KB, so the image has to fit in there", "how big is the image? it has got to fit in «n» KB of flash",
	}, "flash is «n» KB on the revised board, the image has to fit in there", "hardware rev came in, there are «n» KB for the image"},
	{Constraint, []string{
		"Länger als «n» ms darf kein Request dauern.", "jeder Request: maximal «n» ms", "Der Kunde akzeptiert Antwortzeiten bis «n» ms.",
	}, "Der Kunde akzeptiert nun Antwortzeiten bis «n» ms.", "Vertrag nachverhandelt: ein Request kriegt «n» ms."},
	{Constraint, []string{
		"Como mucho «n» conexiones a la vez.", "El servidor aguanta «n» conexiones, no más.", "tope: «n» conexiones",
	}, "El servidor aguanta ahora «n» conexiones, no más.", "Ampliaron la máquina, el tope pasa a ser de «n» conexiones."},
	{Constraint, []string{
		"单个文件大小不能超过 «n» KB。", "上传的文件最多 «n» KB。", "文件上限是 «n» KB，超过会被拒绝。",
	}, "文件上限改成 «n» KB 了。", "服务器升级了，现在可以传 «n» KB 的文件。"},
	{Constraint, []string{
		"the build box has compiler «v» and that won't change", "compiler on the build box: «v», take it or leave it", "I'm told the build box is stuck on compiler «v».",
	}, "the build box has compiler «v» after the reinstall", "IT reinstalled the thing, we compile with «v» from this morning"},
	{Constraint, []string{
		"the whole suite has «n» seconds before CI cuts it off", "CI pulls the plug after «n» seconds", "Timeout in CI: «n» s.",
	}, "Timeout in CI: «n» s, they changed it.", "the runners were reconfigured, a suite gets «n» seconds"},

	{Fact, []string{
		"login for the sandbox is «v», no password", "you get into the sandbox as «v»", "sandbox user? «v».",
	}, "you get into the sandbox as «v» now", "they reset the accounts, log in with «v» over there"},
	{Fact, []string{
		"the metrics thing sits behind :«n»", "metrics → :«n»", "Prometheus scrapes our metrics at :«n».",
	}, "metrics → :«n» (moved)", "scraping changed, prometheus hits :«n»"},
	{Fact, []string{
		"It was «v» who told me about the crash.", "the crash was noticed by «v» originally", "according to «v», the crash shows up only on cold starts",
	}, "sorry, it was «v» who told me about the crash", "I confused two people, the report about cold starts came from «v»"},
	{Fact, []string{
		"Die Doku dazu liegt unter wiki/«v».", "wiki/«v» erklärt das alles.", "falls du was nachlesen willst: wiki/«v»",
	}, "Die Doku dazu liegt neuerdings unter wiki/«v».", "Wir haben das Wiki umgeräumt, nachlesen kannst du's in wiki/«v»."},
	{Fact, []string{
		"El bucket de pruebas se llama «v».", "usamos el bucket «v» para pruebas", "para pruebas hay un bucket: «v»",
	}, "El bucket de pruebas se llama ahora «v».", "Borraron aquel almacenamiento; los datos de pruebas están en «v»."},
	{Fact, []string{
		"测试环境的域名是 «v».internal。", "我们的测试环境在 «v».internal。",
	}, "测试环境的域名现在是 «v».internal。", "环境迁移了，新地址 «v».internal。"},
	{Fact, []string{
		"the dataset has «n» rows, in case you wonder", "row count of the dataset: «n»", "I counted «n» rows in the dataset",
	}, "I recounted: «n» rows in the dataset", "my count was off, the table holds «n» records"},
	{Fact, []string{
		"customer id in the failing case: «v»", "the failing case belongs to account «v»", "it fails for «v», works for everyone else",
	}, "my mistake, it fails for «v», works for everyone else", "looked at the wrong log: the account in trouble is «v»"},
	{Fact, []string{
		"we fork from tag «v»", "our fork starts at tag «v»", "upstream tag we forked from = «v»",
	}, "upstream tag we forked from = «v», after the rebase", "rebased last night, the base is «v»"},

	{Goal, []string{
		"what would make me happy: p99 at «n» µs", "done means p99 at «n» µs", "can we get p99 down to «n» µs?",
	}, "done means p99 at «n» µs now", "let's not overdo it, «n» µs at the tail is fine by me"},
	{Goal, []string{
		"end state: every service talks to «v»", "i want every service to talk to «v» eventually", "Where we are heading: services talk to «v», the bus is gone.",
	}, "end state: every service talks to «v», I reconsidered", "architecture review picked something different, «v» becomes what services speak to"},
	{Goal, []string{
		"this ships as version «v»", "We'll call the result «v» when it ships.", "ship it under the name «v»",
	}, "this ships as version «v» after all", "branding came back with «v» as what we print on the box"},
	{Goal, []string{
		"Am Ende soll der Import «v»-Dateien lesen können.", "Ziel: Import von «v»-Dateien.", "Worum es geht: «v»-Dateien importieren.",
	}, "Am Ende soll der Import doch «v»-Dateien lesen können.", "Der Kunde liefert was anderes, nämlich «v», das muss rein."},
	{Goal, []string{
		"Lo que busco es migrar todo a «v».", "la meta: migrar todo a «v»", "Al final todo tiene que estar en «v».",
	}, "Lo que busco ahora es migrar todo a «v».", "La dirección eligió otro destino, acabaremos en «v»."},
	{Goal, []string{
		"最终目标是支持 «v» 协议。", "我们做这些是为了支持 «v» 协议。",
	}, "最终目标改成支持 «v» 协议。", "客户换需求了，要做的是 «v»。"},
	{Goal, []string{
		"by friday «v» wants to click through it", "«v» will click through it on friday, so that has to work", "the person who clicks through it on friday is «v»",
	}, "«v» will click through it on friday, the other one is ill", "different guest at the end of the week: «v» tries it out"},
	{Goal, []string{
		"get rid of every call to «v», that's the job", "the job: zero calls to «v»", "when nothing calls «v» any more we are done",
	}, "the job changed: zero calls to «v»", "we keep that function, what has to disappear is «v»"},

	{Preference, []string{
		"wrap at «n» columns, i have a big screen", "lines up to «n» columns are fine with me", "my editor shows «n» columns, so wrap there",
	}, "wrap at «n» columns, i got another screen", "new monitor! make lines as long as «n»"},
	{Preference, []string{
		"commit messages à la «v», if it's all the same to you", "would you mind writing commit messages the «v» way?", "commit messages: «v» way > anything else",
	}, "commit messages the «v» way from here on", "the team voted, git log should look like «v»"},
	{Preference, []string{
		"test data: name people «v», foo and bar bore me", "could the example person be «v»?", "i'd love examples with a person named «v»",
	}, "could the example person be «v» now?", "the joke got old, make the person «v»"},
	{Preference, []string{
		"Mir gefällt «v» als Testframework besser.", "Wenn's geht, nimm «v» zum Testen.", "zum Testen gern «v»",
	}, "Wenn's geht, nimm jetzt «v» zum Testen.", "Ich hab umgedacht, Tests schreiben wir mit «v»."},
	{Preference, []string{
		"Me gusta más el estilo «v» para los mensajes.", "los mensajes, mejor en estilo «v»", "¿Puedes escribir los mensajes en estilo «v»?",
	}, "los mensajes, ahora mejor en estilo «v»", "Lo pensé otra vez, redacta todo a lo «v»."},
	{Preference, []string{
		"我更喜欢用 «v» 来写示例。", "示例最好用 «v» 写。",
	}, "示例还是改用 «v» 写吧。", "算了，换 «v» 吧，例子看着清楚些。"},
	{Preference, []string{
		"diagrams? «v» syntax, i can render that", "draw things in «v» syntax so i can render them", "i render diagrams with «v», so stick to its syntax",
	}, "draw things in «v» syntax now so i can render them", "switched renderers, for pictures give me «v»"},
	{Preference, []string{
		"summaries of «n» words, i read them on the train", "sum up in «n» words when done", "how about summaries of «n» words?",
	}, "summaries of «n» words now, the train ride got longer", "what you write at the end takes me too long, «n» words would do"},
}
