package dialog

// A tongue is how people demand things in one language. Words are compared in lower case, without accents and
// apostrophes ("don't" is dont), and each sign of Chinese and Japanese is a word.
//
// The lists of patterns are separated by commas. A pattern is a sequence of words within a clause:
//
//	a|b     one of these words, or of a class of that name in braces: {do}
//	a+b|c   a phrase or a word
//	!a|b    a word that is none of these
//	_       any word
//	*ing    a word that ends so
//	#       a number; ` is a name or a quotation
//	..      up to gapLong words, or none; once in a pattern
//	/       the next word begins another clause
//	$       the sentence ends
//
// A pattern with ^ before it matches where a clause begins, one with ~ not after a subject of the language. One with ?
// is weak: it counts only in a sentence without a hedge.
type tongue struct {
	name     string
	marks    string            // frequent words by which the language is recognized; none for a language with signs of its own
	subjects string            // after which a verb is no imperative
	soft     string            // words with which a clause only begins
	joins    string            // words after which another clause begins
	classes  map[string]string // words by the name of their class
	asks     string            // beginnings of questions, even of those without a mark
	excuses  string            // phrases that demand nothing, whose words match no other pattern
	hedges   string            // signs of a report
	forbids  string
	requires string
	prefers  string
}

var tongues = []tongue{
	{
		name: "en",
		marks: `the a an is are to of and it i you for on with not dont do this that we be was were my me your at by from if please pls no any as all
			should must never only always have has keep use make so but or when then just too than its im ive youre`,
		subjects: "i we they it he she who which that users people tests you these those did does is are was were has have had if could would",
		soft:     "please pls plz also just and but so ok okay again really remember note oh hey well yes yeah actually hm hmm btw fyi important kindly maybe and/or",
		joins:    "and but so then also or please pls because",
		classes: map[string]string{
			"do": `change edit modify delete remove push commit add log print rename merge install touch use create write run move introduce import refactor rewrite
				reformat format mock skip ignore disable enable bump upgrade downgrade update deploy break drop store send expose put set make include exclude hardcode hard-code
				copy duplicate assume guess revert squash rebase force-push force amend leave keep depend rely pull fetch publish release restart generate regenerate implement invent
				explain apologize summarize repeat ask wait mix nest inline wrap throw catch swallow let comment mention reply answer build ship check edit overwrite
				commit stage stub patch fork bypass load train select process focus read exceed alter mess downcast cast return pass allow limit test document`,
			"alter":   "add change edit touch create write commit modify rename remove delete introduce update bump merge push deploy install release move refactor",
			"modal":   "must should may can shall will",
			"keep":    "keep leave leaves let stay stays remain must",
			"be":      "is are was were be been",
			"det":     "a an the this that it me my another some those these them him her us",
			"plain":   "write name wrap put prefix document format mention log draw quote sort indent validate escape mask",
			"report":  "fail fails failed work works worked happen happens crash crashes break breaks take takes took show shows pass passes return returns returned appear appears come comes get gets occur occurs see sees hang hangs loads has have had",
			"reports": "fails failed works worked happens crashes breaks takes took shows passes returns returned appears comes gets occurs sees hangs loads has had requires needs supports uses contains prints sends",
			"feel":    "worry bother think know see get understand remember care mind panic sweat believe seem look have be need hesitate",
		},
		asks: `^should|do|does|did|is|are|was|were|can|could|will|would|has|have i|we|it|they|there|he|she|the|this|that|any|these|those, ^are|were|have you, ^didnt|doesnt|isnt|arent|wasnt|shouldnt|couldnt|wouldnt|cant i|we|it|they|there|you|the|this|that,
			^do you, ^did, ^does, ^what _, ^whats, ^why, ^how, ^where, ^who, ^which, ^any idea|ideas|chance`,
		excuses: `no problem|problems|problemo|prob|probs|worries|worry|rush|hurry|idea|clue|luck|thanks|thank|need|reason|matter|wonder|doubt|way|offense|pressure|biggie|stress|sorry|bueno|dice|joke|kidding|good|change|answer|answers|access|data|difference|error|errors|output|response|result|results|such|one|test|tests|comment|comments|effect|success|more+questions|question,
			no longer !than, no *s failed|fail|found|ran|pass|passed|here|yet|show, dont|not|never worry|bother, dont {feel}, never mind, nevermind, never cease|ceases|heard|seen|had|thought|been|worked|works|happened|knew|got|ran|did|used, you|ya never know, better late than never, now or never,
			i must|should|shall|may|might|will|can, i have|need|had|got|ought|gotta to, i gotta, ive got to, must have *ed, must have been|gone|missed|broken|lost|done|forgotten|had|hit, must have a|some, it|that|this|there|he|she must be, must be wrong|missing|broken|something|some|because|due|related|somewhere|why|one,
			should have|be+fine|be+ok|be+okay|be+done|be+good|be+easy|be+able|be+working|be+there|be+enough|be+it|work|see|do+it|help|suffice, should be updated|fixed|addressed|removed|changed|renamed|added|moved|deleted|closed|dropped|improved|possible|reverted, whether|where .. should, that|it|this should|shouldnt be|matter|take|work|happen, should i|we|it,
			{be}|have|has|had|got|gets|get|see|sees|saw|with|theres|says|say|shows|found|gives|gave no, only|always|never|still|just|at+most {report}, {reports} only|at+most|always|never|at+least, it|he|she|they|this|that|which|who only|always|never, only|always|never *ed,
			not only|yet|sure|necessarily, if|why|or not, if only, the only, only problem|thing|issue|question|difference|reason, only when|if|on|happens, only because|after|now, i|ive|we|weve only|always|never *ed, # forbidden,
			before you go|continue|proceed|start|begin|leave|do+anything, keep going|it+up|me+posted|at+it|trying|working|up, use .. to find|see|check|search|look|debug|figure|list|get|show|verify|reproduce|inspect|locate|read|fetch, last|one+more|another thing,
			id|i+would like|love to, i like|love to, i like|love it|that|this|how|your|what, rather than|good|nice|strange|odd|slow|big|long|large|small|weird|well, stop here|there|now|it|the,
			cannot|cant find|read|open|resolve|connect|see|reproduce|get|tell|figure|understand|load|be+found|access|log|login|wait|believe|say|remember|think, we|you|i need|have|needs|has to update|fix|add|remove|look|check|find|figure|confirm|see|change|investigate|address|do|make|talk|discuss|decide|tackle, make sure i|we understand, i *ed, should|could|can|may i|we, you dont have|need to, dont have to, not sure, for now, to avoid|ensure|prevent,
			i dont want to bother|disturb|interrupt|annoy|sound|be, got|get|getting|gets rejected|forbidden|refused`,
		hedges: `looks like, look like, seems, seem, apparently, i feel, a feeling, i think, i guess, i suspect, maybe, perhaps, turns out, says, complains, i get, i got, i see, im getting, im seeing, i noticed, it says, used to, currently, for some reason, yesterday, fails, failed, crashes, crashed,
			probably, i believe, i assume, i wonder, not sure, dunno, already, wont start|work|load|open|run|build|compile|stop|connect, doesnt|didnt work|load|start|open|compile|help|show|find|build, i have|ive *ed, just *ed, i didnt, i only, we used, thanks for`,
		forbids: `must|should|shall not, may|can not {do}|be, mustnt, shouldnt, should|must|may|can|shall|to|will|you|please|and|we never, never ever, ^never !been|the|a|an|in|seen|had|had, ~never {do}, never be, ?^no !{det}|{do}|{feel}|i|im|ive|id|we|you|youre|were|it|thats|its|and|but|not|dont|use|lets|problem|need|way|he|she|they|there|just|really|please|ok|sorry|thank|wait,
			?no new|more|extra|additional|other|external|third-party|further, no ` + "`" + `, not allowed|permitted, forbidden, prohibited, banned, verboten, off-limits, off limits, out of bounds, under no circumstances, on no account, in no case, by no means, at no point, refrain from, stay|keep|steer away|clear|out|off, stay the hell,
			hands off, ^avoid, should|must|lets|to|please|and|always avoid, try to avoid, {keep} .. untouched|unchanged|alone|intact|frozen, {keep} .. as is|it|they, stays|stay|remains|remain as|unchanged|untouched|frozen|put, read-only, {be} frozen|locked|taboo|untouchable|sacred,
			in peace, nowhere|nothing|no else, no one else, nobody|nothing|none .. may|should|must|can|goes|gets|edits|touches|changes|ships|leaves|allowed|merges, no one .. may|should|must|can|goes|edits|touches|changes|ships|allowed|merges, full stop, not one more, and no more,
			without asking|my|approval|the+approval|permission|telling|me|the+ok|a+review|review, unless i|we|asked|told|necessary|absolutely|it+goes|explicitly|approved|they, ~dont|not {do}, do not !{feel}, ^dont !{feel}|forget, ^dont you ever|dare, ^stop|quit|cease *ing, stop that|doing,
			i|we dont|do|never|didnt want|need !to|it|this|that, i|we do not want, i|we dont want to|you|any|a|anything, dont want !to|it, i|we hate, ill|id|i reject|refuse|revert, i cant|cannot stand, youre|you|we|is|are|were not supposed|meant|allowed to, isnt|arent allowed|permitted|supposed|acceptable|ok|okay, {be} not acceptable|ok|okay|negotiable,
			we|you|it|they|this cant|cannot|cant {do}, cannot|cant exceed|change|break|be|have|depend|rely|go|grow|use|take|block, wont change, not more|less|larger|longer|bigger, no more|longer|larger|fewer|less|later|higher|bigger than, not exceed, ?at most|least, at the most,
			?max|maximum .. #, ?minimum|min #, ?^max|timeout|limit|budget|quota .. / #, ?# .. tops, ^period $, only .. / please|pls, ^wrap at #, ?# max|maximum|tops|characters max|chars max, ? upper|lower limit, {be} the limit|ceiling|maximum|cap|minimum, the ceiling|cap, limited to, limit {be}, ?limit of, limit to|yourself|it|the|your|changes, ceiling, budget for|of|{be}, ?timeout in|of|{be}, ?timeout in .. # , quota, deadline,
			?strictly, ?exclusively, i|we only want|need, only exactly|what, ^only {do}, ^{do}|work|stay|touch|look .. only, ^{do}|look|work only, {modal}|you|to only, only {modal}|ever, only .. may|should|must|please, ?only please|pls, longer|larger|bigger|higher|greater|older|newer than #, ?within #, ?less|fewer than #, ?{keep}|stays|stay|be .. under|below|within|less|fewer|shorter|smaller|above, ?under|below|over|within|above #,
			?gets|get killed|rejected|dropped|reverted|refused, more than # .. not|no, nothing of|below|that|newer|larger|bigger|goes`,
		requires: `?must, ?^always, {modal}|please|to|you|we always, ?~always {do}, make|be sure|certain, ^ensure, {modal}|please|you|we ensure, ?required, ?requires that|a|approval, ?require, mandatory, compulsory, obligatory, obliged, non-negotiable, i insist|require|demand, ?i expect, make it a habit, from now|here|today on, from now, going forward, henceforth, ^in future,
			in the future, moving forward, every|each time you|we, everytime, ?whenever you|we|i, as a rule, remember to|that, dont|never forget to|that|the, keep in mind, reminder, ask|check|confirm|clear with me, ask|tell me|us before|first, ask me before|first|if|when|whenever|unless, then ask me, ask before, wait for my|me, before|after|when|if you {alter}, before reporting|committing|commiting|pushing|merging|deploying|shipping|releasing, before you _|go|continue, before anything|any,
			stick|adhere|conform to|with, sign-off, signs off, ?approve|approval, protected, stuck with|on, has|have|it got to, got to, gotta, or it doesnt, or not at all, take it or, youre|are|you supposed|meant|expected to, {be} to be,
			?you|it|they|that|this|we|everything|there have|has|need|needs|ought to, ?has|needs to, ?has|have|needs|need to be|run|stay|finish|arrive|pass|work|keep|use|go|have|get|follow|match|fit|support|compile|remain|live|sit|start|end|come|build|return, ?should, shall, ?every|each|all|any|whoever|whatever|everything|anything .. need|needs|should|must|goes|go|shall,
			?every|each|all|any|whoever .. has|have|gets, without .. isnt|not|wont, ^use !it|this|that|to|case|cases, ?for|in|when|with|on|inside .. use, ~use ` + "`" + ` for|in|instead, ?instead of, ^keep !{feel}|going|in, ?^{plain} !{det}, ^answer|reply|respond|speak|write|talk|comment in|with|only|briefly, ^follow !up|me|it|that|this,
			i meant, meant|mean to be, not ` + "`" + `|# / ` + "`" + `|#, scratch|forget that|what, ^no / use|take|make|put|do|keep|call|with|go, ^actually|no / make|use|lets, actually|rather make|use, important|crucial|essential|critical|vital that|to|is, hard requirement, a requirement, a must, we support, {keep} compatibility|backward|backwards,
			in pairs, then you, must|has|have|needs to pass, one .. per, ^respect|obey|honor|honour, treat .. as, assume .. not, until i|we|you, ^{do} .. first / then, ^do .. by|yourself|manually, goes through, {modal} go through, belongs|belong in, masked with, gets a look`,
		prefers: `prefer, prefers, preferred, preferably, prefered, id|i|would|much rather, rather have|see|not, favorite, favourite, ideally, if|where|when|whenever possible, if you can, if at all possible, would|itd be nice|great|good|better|cool|nicer|best|lovely|awesome|ideal|neat, itd be, ?id|i+would|i like|love, ?i like|love|enjoy|fancy, i|we want|wish all|every|each|only|small|short|as|your|them|names|it+to, i|we want .. to be|stay|remain|use|keep|talk, my choice|preference|taste,
			best|better|nicer|easier for me, ?better to|if|off|not, best to|if|not, nicer if|to, lets go with, lets|let+us use|stick|keep|avoid|call|stay|make, ^go with, ^try|aim|strive to|for|not, if its all the same, would you mind, fine with|by me, would do, so i can, goal|aim|target of|is|here, ?the point|job|plan|purpose of|is, ^the point|job|plan|goal|aim / , the job, end state, done means, we are done, make me happy, would make me,
			eventually, ?in the end, feel free not, wherever possible, as .. as possible, as few|little|much|short|small as, i tend to, i usually|normally, ?looks better|best, all the same, i would only want`,
	},
	{
		name: "de",
		marks: `der die das und ist nicht ein eine einen ich du wir es mit auf für von im den dem zu bitte auch noch nur mal keine kein wenn dass daß sind muss müssen soll bei aus nach an vor immer alle sie mir mich dir am zum zur
			werden wird hat haben war nie oder aber als jetzt statt ohne über unter hab mach lass schon gut danke nein ja niemals darf dürfen dann hier doch so nochmal warum wie`,
		subjects: "ich er sie es wir man ihr das der die",
		soft:     "bitte und aber also ja nein ok okay ach so denn dann noch auch hey gut",
		joins:    "und aber oder sondern dann bitte",
		classes: map[string]string{
			"do": `ändern ändere anfassen lösche löschen entfernen entferne nutzen nutze benutzen benutze verwenden verwende nimm nehmen schreiben schreib schreibe committen committe pushen pushe mergen merge umbenennen hinzufügen füge einführen führe
				einbauen bau baue installieren installiere importieren importiere loggen logge ausgeben überschreiben überschreibe verschieben verschiebe formatieren formatiere anlegen lege erstellen erstelle erzeugen mach mache machen ändert fass fasse berühren rühr
				anrühren bearbeiten bearbeite antworte antworten halte halt behalte lass lasse setz setze verändern modifizieren aufrufen mocken kommentieren übersetzen umbauen refactoren refaktorieren rühre deaktivieren abschalten zeigen zugreifen`,
			"modal":  "darf dürfen darfst dürft soll sollen sollst sollte sollten sollt kann können kannst",
			"thing":  "problem ahnung thema sorge sorgen stress eile plan angst lust idee zeit panik frage fragen kopf wunder grund unterschied fehler ergebnis ausgabe antwort treffer problem",
			"report": "fehl läuft funktioniert geht klappt kommt dauert braucht passiert ist hat bekomme bekommt kriege scheitert schlägt zeigt gibt liefert wirft stürzt hängt lädt unter auf bei in mit wenn noch ein eine",
		},
		asks: `^warum, ^wieso, ^weshalb, ^wie, ^was, ^wo, ^wer, ^wann, ^welche|welcher|welches|welchen, ^muss|darf|soll|kann|sollte|müsste|könnte|wird|ist|hat|gibt ich|man|es|der|die|das|da|wir|jemand|er|sie, ^müssen|dürfen|sollen|sollten wir|die`,
		excuses: `kein|keine|keinen {thing}, mach|macht dir|euch|dich .. $, ich muss|soll|sollte|darf|kann|will, muss ich|man|wir, ich müsste, da|das|es|hier|irgendwo|irgendwas muss|müsste|müssen, muss es|das|an|wohl|am|irgendwo|irgendwas, nur {report}, nie|niemals geleert|gesehen|gehört|passiert|funktioniert|gemacht, nie im leben,
			immer noch|wieder|ewig|weiter|mehr|schlimmer|langsamer|{report}, {report} immer|nur|nie, wie immer, noch nie|immer, hat|haben|habe|hab .. nie, nicht mehr|so .. $, ich|er|es|sie .. nicht mehr, hat|enthält|liefert|zeigt|gibt|bringt höchstens|maximal|mindestens|nur, ich hab|habe nur|immer|nie, weiter so, gern|gerne geschehen, nicht schlimm|schlecht|nötig, sehr gern|gerne, nur mal|kurz|so`,
		hedges: `anscheinend, scheinbar, scheint, offenbar, vermutlich, wahrscheinlich, vielleicht, ich glaube|denke|vermute|bekomme|kriege|sehe|hab|habe, sagt, meldet, schlägt .. fehl, ich weiß, keine ahnung, seit dem|gestern|heute|der, gestern, funktioniert|läuft|geht|klappt nicht, irgendwie, startet nicht, momentan, aktuell, derzeit`,
		forbids: `niemals, nie wieder|mehr, ^nie !{report}, nie|niemals {do}, wird|werden nie|niemals|nichts|nicht, auf keinen fall, keinesfalls, unter keinen umständen, verboten, untersagt, tabu, gesperrt, schreibgeschützt, finger weg, hände weg, ^finger, in ruhe, bleibt|bleiben wie|unverändert|unberührt, ?^kein|keine|keinen|keinerlei !{thing},
			?^bitte kein|keine|keinen|nicht|nichts, höchstens, ?mindestens, maximal, obergrenze, untergrenze, ?^nur !{report}, ?darf|dürfen|sollen|soll|sollte|{do} .. nur, ausschließlich, nicht mehr|länger|größer als, länger|größer|kleiner|mehr als #, ~{modal} .. nicht|nichts|kein|keine|keinen|nie, ?mehr|länger .. darf|dürfen,
			ich|wir will|wollen|möchte|möchten|brauche|brauchen .. kein|keine|keinen|nicht|nichts|nie, ich will|möchte nicht, ^hör|hört auf, ^höre auf, lass|lasst das|die|den .. sein|bleiben, lass|lasst .. ruhe, lass|lasst die finger, vermeide, vermeiden, ^vermeid, verzichte|verzichten auf, ^verzichte, ^{do} .. nicht|nichts|kein|keine|keinen|nie|niemals, nicht {do}, nichts {do}, ohne|außer .. rücksprache|absprache|zu fragen|freigabe,
			ohne mein|meine|meinen, außer ich, es sei denn, nicht .. ohne, unter|bis # , nicht überschreiten, grenze ist|liegt, # .. limit|maximum|obergrenze, kein .. darf, mehr nicht, nirgendwo|nirgends sonst, ^auf .. nicht|nie|nichts`,
		requires: `?muss, ?müssen, ?musst, müsst, ^immer !{report}, immer {do}|erst|zuerst, ?stets, ab jetzt|sofort|heute, von jetzt|nun an, künftig, zukünftig, in zukunft, geschützt, achte|achtet|achten .. auf|darauf, ^achte, sorge|sorg dafür, stell|stelle sicher, sicherstellen, jedes mal, jedesmal, pflicht, denk|denke|denkt daran|dran, vergiss nicht, ^denk, frag|frage mich|vorher|erst, vor jedem|jeder, bevor du|ihr,
			vorher .. fragen, sobald du, immer wenn, jede|jeder|jedes .. braucht|bekommt|muss|kriegt|hat, alle .. müssen|sollen|brauchen|sollten, ?soll, ?sollen, ?sollte, ?sollten, ist wichtig, wichtig ist|dass, zwingend, unbedingt, erforderlich, bleib|bleibt bei|kompatibel, halte|haltet dich|euch, ^halte, ^halt, ^nimm, ^nutze, ^nutz, ^verwende, ^benutze, ^benutz, nein / nimm|nutze|mach|benutze|verwende|das|die|der|es, statt|anstatt|anstelle, meinte, ich meinte,
			^schreib|schreibe|antworte|antwort|rede .. auf|in|im|immer, sondern, nur noch, ^behalte, unterstützen müssen, in jedem fall, so lassen, gehört|gehören in|nach`,
		prefers: `lieber, am liebsten, ?gern, ?gerne, gefällt, bevorzuge, bevorzugt, vorzugsweise, wenn möglich, falls möglich, möglichst, wenns geht, wenn es geht, idealerweise, am ende soll, ziel, worum es geht, wäre schön|gut|nett|toll|super|besser|prima, schön|gut|nett|toll|super|besser wäre, ich mag, ich hätte, ich fände, ich finde .. besser|schöner, ?mag ich, besser wenn|ohne|mit, wünsche mir, ich würde|möchte, mir wäre|ist, nach möglichkeit, am besten, soweit möglich, versuch|versuche`,
	},
	{
		name: "fr",
		marks: `le la les un une des et est ne pas je tu il nous vous dans sur pour avec que qui du de au aux ce cette ça mais ou plus sans par tout tous on en toujours jamais sont être faut c'est n'est l' d' merci moi mon ma mes
			très non oui utilise aussi comme si doit doivent jai peux`,
		subjects: "je il elle on nous ils elles ca qui cela",
		soft:     "et mais alors donc ok oui non stp svp merci aussi puis bon",
		joins:    "et mais puis ou donc alors",
		classes: map[string]string{
			"do": `touche touchez toucher modifie modifiez modifier change changez changer supprime supprimez supprimer efface effacer ajoute ajoutez ajouter utilise utilisez utiliser installe installez installer crée créez créer écris écrivez écrire mets mettez mettre
				fais faites faire lance lancez lancer commite committe committer commit pousse poussez pousser push renomme renommer déplace déplacer importe importer mocke mocker logge logger affiche afficher réponds répondez répondre garde gardez garder laisse laissez laisser
				nutilise nutilisez najoute najoutez ninstalle nécris neffacer nefface ncrée nimporte nenlève narrête`,
			"thing": "souci problème soucis grave idée mal encore sûr besoin ça question faute tout vraiment si le la les un une du de trop",
		},
		asks: `^pourquoi, ^comment _, ^est-ce, ^quest-ce, ^où, ^quel|quelle|quels|quelles, ^qui est, ^combien, ^dois-je, ^faut-il, ^peut-on`,
		excuses: `pas de souci|soucis|problème|problèmes|quoi|mal|chance, pas grave, tinquiète, tinquiete pas, ne tinquiète, ne vous inquiétez, je|tu dois|peux|devais, jai dû, ça|ca|cela|ce doit|devrait être, il doit être|manquer|avoir, ne .. que, toujours pas, toujours le|la|les|un|une même, cest|est toujours, marche|fonctionne|plante|échoue toujours|jamais, seulement sur|quand|si,
			nai jamais, na jamais, je|il|elle|tu ne !veux|veut|voudrais|souhaite|doit|dois|peut|faut|peux .. pas, ça|ca|cela ne .. pas|plus, pas encore|sûr|tout|vraiment, na .. que`,
		hedges: `apparemment, on dirait, semble, je crois|pense, jai limpression, peut-être, sans doute, hier, ne marche|fonctionne|passe|trouve|démarre, plante, jai|javais, ça marche`,
		forbids: `^jamais, ne .. jamais {do}, ne jamais, faut|doit|doivent|dois|devez|peut|jamais jamais, ?jamais {do}, interdit, interdite, interdits, interdiction, défense de, ~ne {do}, ~nutilise|nutilisez|najoute|najoutez|ninstalle|nécris|nefface|ncrée .. pas|jamais|rien, ne {do} pas|rien|plus, ^{do} pas|rien|jamais, touche|touchez .. pas|rien, ne pas, ?^ne _ pas|jamais|rien, ~ne .. surtout, surtout pas,
			?^pas de|d|plus|touche !{thing}, ?pas de !{thing}, je|on ne veux|veut|voudrais|souhaite .. pas|plus|aucun|aucune, je veux pas|plus|aucun|aucune, on veut pas|plus|aucun, aucun|aucune .. ne, ^aucun|aucune, plus aucun|aucune, évite, évitez, ^éviter, éviter de, arrête|arrêtez de, ^cesse, laisse|laissez .. tranquille, laisse|laissez .. comme, en lecture seule, au maximum|plus, maximum, ?au minimum|moins, ?uniquement, ?seulement, ^{do} que, sauf si,
			à condition, ne doit|doivent|dois|devez|peut|peuvent .. pas|jamais|rien|plus, ne faut pas|rien|jamais, il faut pas, doit|doivent|dois|devez|faut .. pas|rien, moins de #, pas plus de #, sans mon|me|demander|mon accord|autorisation, dépasser, limite de|est|à, bas les pattes, ne pas`,
		requires: `?doit, ?doivent, ?devez, ?devra, ?devront, ^toujours !pas|le|la|un|une|en, toujours {do}, {do} toujours, ?il faut, ?faudra, ?faut que, désormais, dorénavant, à partir de maintenant, à lavenir, protégé, protégée, obligatoire, impératif, impérativement, assure-toi, assurez-vous, sassurer que, veille|veillez à, fais attention, noublie pas, noubliez pas, pense|pensez à, rappelle-toi, chaque fois, avant de {do}, avant chaque, demande-moi|demandez-moi,
			demande|demandez avant|dabord, chaque .. doit|a besoin, tous|toutes .. doivent, ^utilise, ^utilisez, non / utilise|prends|mets|plutôt|fais|cest, au lieu de|du, à la place, plutôt que, je voulais dire, ^garde, ^gardez, ^respecte, ^respectez, ^suis les|la|le, réponds|répondez|écris|parle|écrivez .. en, essentiel|important que|de, on doit|supporte, nécessaire, ^reste|restez`,
		prefers: `préfère, préfères, préférerais, préfèrerais, préférable, plutôt, de préférence, si possible, jaimerais, jaime, jaimerai, le but, lobjectif, idéalement, ce serait bien|mieux|sympa|cool|top, ça serait bien|mieux|sympa|cool, serait mieux|bien|préférable, mieux vaut|vaudrait, dans lidéal, autant que possible, je voudrais, je souhaite, le mieux, essaie|essaye|essayez de, vaut mieux`,
	},
	{
		name: "es",
		marks: `el la los las un una y es no que de en con por para lo se del al su me te mi si como más pero sin está esta este son todo todos nunca siempre hay usa solo sólo porque ya muy nada tengo hacer gracias otra cuando
			desde deben debe qué cómo dónde yo`,
		subjects: "yo él ella ellos se lo nosotros me",
		soft:     "y pero ok vale por favor porfa si sí no bueno pues también entonces luego",
		joins:    "y pero o luego entonces favor porfa",
		classes: map[string]string{
			"do": `toques tocar cambies cambiar modifiques modificar edites editar borres borrar elimines eliminar uses usar añadas añadir agregues agregar metas meter pongas poner crees crear escribas escribir instales instalar hagas hacer subas subir commitees commitear
				hagáis toquéis uséis renombres renombrar muevas mover importes importar imprimas imprimir mergees mergear actualices actualizar ejecutes ejecutar rompas romper dejes dejar toque cambie modifique borre elimine use añada agregue cree escriba instale haga suba
				refactorices refactorizar inventes inventar asumas asumir comentes comentar respondas responder despliegues desplegar pushees pushear edite introduzcas introducir repitas toquen cambien usen hagan`,
			"tu":    "usa utiliza escribe responde mantén pon haz deja ejecuta corre añade agrega cambia modifica edita toca crea guarda sigue contesta usad usen utilice use emplea respeta nombra lanza",
			"thing": "pasa problema te importa hay es sé se entiendo funciona encuentro veo puedo sirve tengo creo me lo está era va sale tiene hace aparece llega carga arranca",
		},
		asks: `^por qué, ^porque no, ^dónde, ^cuál|cuáles, ^cuánto|cuántos|cuántas, ^qué pasa|hace|es|significa|tal|versión, ^cómo se|puedo|hago|funciona, ^tengo|debo|puedo|hay que .. o`,
		excuses: `no pasa nada, no hay problema|prisa, no te preocupes|preocupe, no se preocupe, no importa, ningún problema, sin problema|problemas, ^debe ser|estar|haber, eso|esto debe ser|estar, debo, tengo que, tuve que, siempre falla|da|sale|devuelve|pasa|tarda|aparece|ocurre|lo mismo|igual, nunca llega|entra|termina|pasa|funciona|sale|devuelve|carga|había|he|ha, falla|sale|pasa|ocurre|funciona siempre|nunca|solo|sólo,
			error solo|sólo, solo|sólo sale|falla|pasa|ocurre|funciona|en|cuando|si|he|era|cambié|quería|me|quiero, no sólo|solo, como siempre, casi siempre|nunca, solo una pregunta, al final no|era|funcionó, el|la|los|las mejor, mucho|va|funciona mejor`,
		hedges: `parece, creo, supongo, quizás, quizá, tal vez, a lo mejor, al parecer, por lo visto, ayer, no funciona|encuentro|entiendo|sé|carga|arranca|veo, dice, me da|sale, he, acabo de`,
		forbids: `^nunca !{thing}, nunca {do}, ?nunca se, jamás, prohibido, prohibida, prohibidos, prohibidas, bloqueado, bloqueada, ~no {do}, no se {do}, no se debe|puede|pueden|deben|toca|cambia|permite, no debe, no deben, no debes, no puede|pueden superar|pasar|exceder|ser|tener|cambiar|depender|usar|haber, no puedes {do}, no quiero, no queremos, no quisiera, no me gusta|gustan, ^nada de, ningún|ninguna .. nuevo|nueva|más, ^ningún, ^ninguna, ^ni, ni te|se, evita, evitar, eviten, evite,
			^evitad, deja|deje|dejen|dejad de, ^para de, en paz, deja|dejad .. como, deja .. quieto|tranquilo, como máximo|mínimo|mucho, a lo sumo, máximo #|de, ?mínimo #|de, # .. máximo, no más, tope, ?límite, únicamente, solamente, ?^solo|sólo {do}|{tu}, ^{tu} solo|sólo|únicamente, ^{tu} .. solo|sólo, ?solo|sólo .. debe|deben|puede|pueden, ?menos de #, sin preguntar|preguntarme|mi|permiso|avisar|consultarme, ni se te, salvo que, a menos que,
			superar, fuera de|tus manos, manos fuera, ^sin !{thing}, no acepto, no hace falta que`,
		requires: `?^siempre !{thing}, siempre {do}|{tu}|que, {tu} siempre, ?debe, ?deben, ?debes, deberá, deberán, ?debería, ?deberían, ?hay que, tiene que, tienen que, tienes que, tenemos que, a partir de ahora|hoy, de ahora en adelante, desde ahora, en adelante, en el futuro, protegida, protegido, obligatorio, obligatoria, imprescindible, cada vez, asegúrate, asegúrese, asegurate, aseguraos, recuerda, acuérdate, acuerdate, ten en cuenta, ten cuidado, no olvides, no te olvides,
			pregúntame, preguntame, pregunta|consulta|avisa antes|primero, avísame antes, antes de {do}, antes de cada, cada .. debe|necesita|tiene que|lleva, todos|todas .. deben|tienen|llevan|van, ^usa, ^utiliza, ^use, ^usen, ^mantén, ^manten, ^respeta, ^sigue las|los|el|la|nuestras|con, no / usa|utiliza|mejor|es|pon|quiero|me, en lugar|vez de|del, en lugar, quería|quise decir, me refería, responde|escribe|contesta|habla .. en, es importante|necesario|obligatorio|fundamental, necesitamos|queremos soportar|mantener|que,
			los|las .. van en|al|a|con, sí o sí, sin falta, procura que, conserva, ^los|las .. en|con inglés|español|minúsculas|mayúsculas, se queda|quedan`,
		prefers: `prefiero, preferiría, preferimos, preferible, preferentemente, de preferencia, si es posible, si se puede, si puedes, ^mejor, mejor si|con|en|usar|sin|no|que|así, ?me gusta, me gustaría, me gustan, la meta, el objetivo, lo que busco, al final todo, estaría bien|bueno|genial, sería bueno|mejor|ideal|bonito|genial|preferible, ojalá, quisiera, quiero que, idealmente, en lo posible, intenta, trata de, a ser posible, lo ideal, en la medida`,
	},
	{
		name: "pt",
		marks: `o a os as um uma e é não que de em com por para no na nos nas do da dos das se me eu isso esse essa este está são mas mais sem como só nunca sempre todo todos tem têm foi ao já pra você obrigado obrigada uso usa use
			antes quando ser ter fazer agora nada também valeu seu ele ela`,
		subjects: "eu ele ela eles elas isso isto se que quem nos ainda",
		soft:     "e mas por favor então ok beleza também só pf sim bom olha",
		joins:    "e mas ou então favor",
		classes: map[string]string{
			"do": `mexa mexe mexas mexer altera altere alterar alteres altera mude mudes mudar modifique modifica modificar modifiques edite edita editar edites apague apaga apagar apagues remova remove remover remove delete deletar use usa usar uses adicione adiciona adicionar adiciones crie cria criar
				cries escreva escreve escrever escrevas instale instala instalar instales faça faz façam fazer faças commite commitar committar suba subir toque toca tocar toques rode rodar execute executar renomeie renomear mova mover importe importar coloque coloca colocar ponha põe pôr
				quebre quebrar atualize atualizar invente inventar inventa assuma assumir comente comentar responda responde responder publique publicar envie enviar mergeie mergear imprima imprimir logue logar gere gerar refatore refatorar reescreva reescrever dependa depender introduza introduzir inclua incluir deixe deixa deixar dê
				exponha expor formate formatar traduza traduzir pushe pushar repita repetir ignore ignorar mocke mockar`,
			"imp":   "use usa altere altera edite edita modifique modifica mexa mexe mude escreva escreve crie responda responde rode execute faça mantenha mantém coloque siga toque trabalhe commite utilize utiliza rodem usem chame nomeie",
			"thing": "problema funciona funcionou sei é foi está tem há se consigo entendi achei encontrei sobe abre carrega aparece roda deu dá vi vejo era preocupe preocupa tenho lembro acho passa entra",
		},
		asks: `^por que|quê, ^porque, ^onde, ^qual|quais, ^quantos|quantas|quanto, ^o que _, ^como eu|faço|posso|funciona|que|se, ^será que, ^preciso|devo|posso, ^tem como`,
		excuses: `sem problema|problemas|pressa|stress|estresse, não tem|há problema|pressa, não se preocupe|preocupa|preocupes, não te preocupes, não precisa se, nenhum problema, ^deve ser|estar|ter, isso|isto deve ser|estar|ter, devo, ^preciso, eu preciso, tenho que|de, tive que, sempre dá|deu|falha|vem|acontece|retorna|demora|aparece|o mesmo|igual, nunca termina|funciona|chega|entra|vi|tinha|foi|funcionou|aconteceu|aparece, só dá|deu|acontece|falha|funciona|mudei|aparece|quando|no|na|em|se|queria|um|uma|isso|falta|mais,
			eu só|nunca|sempre, não só, como sempre, quase sempre|nunca, no final não|deu|era|funcionou, só uma pergunta, nada de errado|novo|mais, não .. nada $, bem|muito|ficou|funciona melhor`,
		hedges: `parece, acho que, acho, talvez, pelo visto, aparentemente, ontem, não funciona|funcionou|sobe|abre|carrega|encontro|consigo|entendi|sei, diz, dá erro, deu erro, deu o, provavelmente, acabei de, já fiz|subi|mudei|testei`,
		forbids: `^nunca !{thing}, nunca {do}, ?nunca se, jamais, proibido, proibida, proibidos, proibidas, bloqueado, bloqueada, ~não {do}, não é|são permitido|permitida|permitidos|para|pra, não se deve|pode|mexe|altera|usa, não deve, não devem, não pode|podem passar|ultrapassar|exceder|ser|ter|mudar|quebrar|depender|usar|haver|vazar|demorar|mexer|alterar|conter|ficar, você não pode, não quero, não queremos, não queria, não gosto|gostamos, ^nada de, sem nenhum|nenhuma|novas|novos|mais,
			nenhum|nenhuma .. novo|nova|pode|deve, ^nenhum, ^nenhuma, evite, evita, evitar, evitem, pare|para|parem|pára de, deixa|deixe|deixem .. quieto|quieta|paz|como|assim|quietos, fica|fique longe|fora, em paz, no máximo|mínimo, máximo de|#, ?mínimo de|#, # .. máximo|max, não mais, ?limite de|é|máximo, ?limita|limite|limite-se, ?^apenas {imp}, ?^só|somente|apenas {imp}|{do}, ^{imp} só|somente|apenas, ^{imp} .. só|somente|apenas, somente|apenas .. pode|podem|deve|devem, exclusivamente,
			unicamente, ?menos de|que #, ?até #, sem perguntar|avisar|minha|meu|permissão|autorização|eu|me|falar, a menos que, a não ser, tira|tire a mão|as mãos, ^sem !{thing}, abaixo de|do`,
		requires: `?^sempre !{thing}, sempre {do}|{imp}|que, {imp} sempre, deve|devem|tem que sempre, ?deve, ?devem, ?deverá, ?deverão, ?deveria, ?deveriam, tem que|de, têm que|de, temos que|de, precisa|precisam ser|ter|estar|passar|funcionar|rodar|de|continuar|suportar|ficar, ?precisamos, ?é preciso|necessário|obrigatório|importante|essencial|fundamental, a partir de agora|hoje, de agora em diante, daqui pra|para frente, daqui em diante, daqui por diante, no futuro, protegido, protegida, obrigatório, obrigatória,
			cada vez, toda vez, certifique-se, certifica-te, garanta, garante que, assegure, assegure-se, lembre, lembre-se, lembra de|que, não esqueça|esquece|esqueças, não se esqueça, tenha|tem em mente, cuidado com|para, pergunte|pergunta|avise|avisa|consulte .. antes|primeiro, pergunte antes, me pergunte|avise|consulte, antes de {do}, antes de cada, cada .. deve|precisa|tem, todo|toda|todos|todas .. deve|devem|precisa|precisam|tem|têm|vai|vão, ^use, ^usa, ^utilize, ^usem, ^mantenha, ^mantém, ^siga, ^respeite,
			não / use|usa|é|o|a|quero|quis|coloca|coloque|faz|faça|prefiro, em vez|lugar|invés de|do|da, ao invés de|do|da, no lugar de|do|da, quis dizer, queria dizer, me referia, responda|responde|escreva|escreve|fale|fala .. em, manter|mantenha|mantendo compatibilidade|compatível, sem falta, fica|ficam em|no|na, vai|vão no|em|na`,
		prefers: `prefiro, preferia, preferimos, preferiria, preferível, preferencialmente, de preferência, se possível, se der, se puder, se der pra, ^melhor, melhor se|com|em|usar|sem|não|que, ?gosto de, gostaria, gostava, seria bom|ótimo|legal|melhor|ideal|bacana|interessante, era bom, idealmente, o ideal, o objetivo, a meta, quero que, queria que, na medida do, tente, tenta, sempre que possível, quanto menos`,
	},
	{
		name: "it",
		marks: `il lo la i gli le un una e è non che di in con per su del della dei delle al alla nel nella da si mi ti ma più senza come solo mai sempre tutti tutte ogni sono ho hai ha questo questa usa devo deve devono va anche se quando
			ora adesso grazie invece prima nessun niente poi fai ai dal sul sulla ancora perché`,
		subjects: "io lui lei loro noi si che chi ci ancora",
		soft:     "e ma per favore allora ok quindi anche poi sì bene ecco dunque",
		joins:    "e ma o poi quindi favore",
		classes: map[string]string{
			"do": `toccare tocca toccate cambiare cambiate modificare modificate editare cancellare cancellate eliminare eliminate rimuovere usare usate utilizzare aggiungere aggiungete creare create scrivere scrivete installare fare fate committare pushare mergiare rinominare spostare importare
				stampare loggare mettere mettete lasciare rompere eseguire lanciare inventare assumere commentare rispondere pubblicare inviare aggiornare esporre formattare tradurre riscrivere introdurre dipendere includere duplicare ripetere ignorare mockare generare refattorizzare superare caricare pushate`,
			"imp":   "usa usate modifica modificate tocca cambia scrivi rispondi esegui mantieni metti lascia lavora crea segui utilizza fai lancia edita tieni chiama commenta parla nomina",
			"thing": "problema funziona so è c'è ho si sono capisco trovo vedo va parte ti ricordo importa ha era ci credo riesco carica fa arriva preoccuparti preoccupare lo mi era sembra penso",
		},
		asks: `^perché, ^dove, ^quale|quali, ^quanto|quanti|quante, ^cosa _, ^che cosa, ^come mai|si|faccio|posso|funziona, ^devo|posso, ^chi`,
		excuses: `nessun problema, nessun errore, niente problemi|paura|fretta|male|di che|di grave|da fare, senza problemi|fretta, non ti preoccupare|preoccupa, non preoccuparti|preoccupatevi, non importa, non fa niente, ^deve essere|esserci|avere, questo|quello|ci deve essere|esserci, devessere, devo, ho dovuto, mai arriva|visto|successo|funzionato|sentito|avuto, non .. mai $, sempre più|un|lo|la|stesso|uguale|fallisce|dà|errore, dura|fallisce|succede|funziona|dà|torna sempre|solo|mai,
			solo in|su|quando|se|il|un|una|per|con, ho .. solo|mai|sempre, non solo, come sempre, quasi sempre|mai, alla fine non|era|ha|funziona, va|funziona|molto meglio, solo una domanda, non .. più $, meno male, mai più di`,
		hedges: `sembra, credo, penso, forse, a quanto pare, probabilmente, ieri, secondo me, non funziona|parte|capisco|trovo|riesco|va, dice, mi dà, dà errore, pare che, ho appena, ho fatto|cambiato|provato`,
		forbids: `^mai {do}, ?^mai !{thing}, mai {do}, ~non {do}, non si deve|devono|può|possono|tocca|usa|modifica, non .. mai {do}, non .. essere mai, vietato, vietata, vietati, proibito, divieto, bloccato, bloccata, non deve, non devono, non devi, non dovete, non dovrebbe, non può|possono superare|essere|avere|cambiare|dipendere|usare|durare|contenere|eccedere, non puoi, non voglio, non vogliamo, non vorrei, non mi piace|piacciono, ?^niente !{thing}|di|da, ?^nessun|nessuna|nessuno !{thing}, ?^basta, evita, evitare, evitate, eviti, smetti,
			smettila, smettetela, ^smettere, lascia|lasciate|lasciare stare|perdere|in+pace|così, lascia|lasciate .. stare|pace|così|com'è, giù le mani, stai|sta|resta alla+larga|lontano|fuori, in pace, al massimo, ?al minimo, ?almeno #, massimo #|di, # .. massimo|max, non più di, non oltre, non superare, ?limite di|è|massimo, ^limitati, ?^solo {imp}|{do}, ^{imp} solo|soltanto|unicamente, ^{imp} .. solo|soltanto, soltanto, ?solo .. deve|devono|può|possono, esclusivamente, unicamente, ?meno di #, ?entro #, senza chiedere|chiedermi|il mio|permesso|autorizzazione|avvisare|avvisarmi|dirmelo,
			a meno che, tranne se, ^senza !{thing}, sotto i|le #, di sola lettura`,
		requires: `?^sempre {do}|{imp}, {imp} sempre, sempre {do}, deve|devono|va|vanno sempre, ?deve, ?devono, ?devi, ?dovete, ?dovrà, ?dovranno, ?dovrebbe, ?dovrebbero, ?bisogna, ?occorre, è necessario|obbligatorio|importante|fondamentale|essenziale, dora in poi|avanti, da ora in poi|avanti, da adesso in poi|avanti, da oggi, in futuro, per il futuro, protetto, protetta, obbligatorio, obbligatoria, ogni volta, assicurati, assicuratevi, assicurarsi, ricorda, ricordati, ricordatevi, tieni|tenete presente|conto, attenzione a, non dimenticare|dimenticarti, chiedimi, avvisami,
			chiedi|chiedimi|avvisa .. prima, prima di {do}|consegnare|chiudere|ogni, prima chiedi, ogni .. deve|ha bisogno|richiede|va, tutti|tutte|tutto .. deve|devono|vanno|va, ^usa, ^usate, ^utilizza, ^mantieni, ^mantenere, ^segui, ^rispetta, no / usa|è|il|la|metti|voglio|fai|meglio, invece di|del|della|che, al posto di|del, intendevo, volevo dire, rispondi|scrivi|parla|scrivete .. in, ?vanno|va in|al|nel|con|messi|scritti|messo, dobbiamo supportare|mantenere|rispettare, i|gli|le .. al|in singolare|inglese|italiano, senza eccezioni, per forza, conserva`,
		prefers: `preferisco, preferirei, preferiamo, preferibile, preferibilmente, di preferenza, se possibile, se puoi, se riesci, ^meglio, meglio se|con|in|usare|senza|non|che, ?mi piace, ?mi piacciono, mi piacerebbe, vorrei, sarebbe bello|meglio|ideale|carino|utile|comodo|preferibile, idealmente, lideale, lobiettivo, lo scopo, voglio che, nei limiti del, cerca di, prova a, il più possibile, per quanto possibile`,
	},
	{
		name:    "zh",
		excuses: `不要紧, 不要担心, 别担心, 别急, 别客气, 不用 担|谢, 没关系, 没问题, 别的, 别人, 特别, 区别, 级别, 类别, 分别, 识别, 判别, 性别, 个别, 告别, 要不要, 要不, 需不需要, 应不应该, 能不能, 一定是, 应该是, 应该 在|没|已|可|能, 我 应该|需要|必须|只能|不能|一定, 不一定, 不应该啊, 总是 失|报|返|出|卡, 只有 .. 才, 不只, 不仅, 最多的, 不能 登|访|启|运|打|连|编|复, 不能用了, 不能正常, 为什么, 不再报, 想要知道, 要是, 只要, 主要, 重要的是吗, 不要了吗, 上限了`,
		asks:    `^为什么, ^怎么, ^哪, ^谁, ^什么, ^是不是, ^有没有, ^要不要, ^能不能看, ^需不需要, ^多少`,
		hedges:  `好像, 似乎, 可能, 我觉得, 看起来, 报错了, 失败了, 刚刚, 刚才, 昨天, 已经, 目前`,
		forbids: `不要, 不能 超|改|动|用|加|删|有|直|再|出|写|提|依|引|暴|大|多|少|修|影|破|把|在|低|高, 不得, 不准, 不许, 不可以, 不可, 禁止, 严禁, 切勿, 请勿, 勿, 别 改|动|碰|删|用|提|在|把|打|加|写|乱|直|再|引|让|给|自|随|生|创|推|合|升|重|硬|碰|修|装|做|去|擅|弄|搞|输|暴, ^别, 不允许, 不应, 不应该, 不该, 只能, 只读, 只许, 只允许, 只准, ^只 改|用|修|在|动|提|写|看|处, 仅限, 仅 .. 可, 最多, ?最少, ?至少, 不超过, ?超过 #, 超过 .. 拒, 上限, 下限, 以内, 之内, 锁住, 锁定, 我 .. 不想, 我不想, 我不要, 不想要, 不想再, 不希望,
			我不喜欢, 避免, 停止, 不需要再, 杜绝, 谁都 .. 别|不, 不让, 保持 .. 不变, ?不变, 控制在, 限制在, 小于 #, 低于 #, 不大于, 不少于, 不多于, 除非, 未经, 没有我的, 不要再, 拒绝`,
		requires: `必须, 务必, 一定要, ?一定, ?需要, ?应该, ?应当, 要求, 每次, ^总是, ^始终, 始终, 永远, 记得, 记住, 确保, 保证, 以后, 今后, 从现在起, 从现在开始, 从今, 往后, 一律, 统一, 都要, 都得, 都必须, 都用, 所有 .. 要|都|须|得|用, 每个 .. 要|都|须|得|用, 全部 .. 要|用|都, 先 .. 再, 之前先, 前先, 先问我, 问我, 遵循, 遵守, 保持, 坚持, 注意, 请用, 请使用, ^使用, ^用 !了|户|例|法, 而不是, 不是 .. 而是, 不是 .. 是, 不对 / 用|是|应|要|改, 代替, 替代, 改用, 换用, 应用, 兼容, 必需, 凡是, 只要 .. 就, 得 .. 才, 要支持, 要兼容, 要保留`,
		prefers:  `喜欢, 最好, 希望, 尽量, 优先, 更好, 习惯, 目标, ?想要, 为了, 倾向, 偏好, 宁可, 宁愿, 更想, 可以的话, 如果可以, 尽可能, 建议, 比较好, 我想, 更愿意`,
	},
	{
		name:     "ja",
		excuses:  `気にしないで, 心配しないで, 問題ない, 問題ありません, わからない, 分からない, わかりません, できない, できません, かもしれない, かもしれません, しかない, 動かない, 終わらない, 出ない, 見つからない, 来ない, 消えない, 開かない, 足りない, 変わらない, 知らない, 要らない $, いらない $, なぜか, 必ずしも, だけ 出|失|起|エ|発, いつも 失|エ|同, 大丈夫, してない, していない, なっていない, じゃない $, いけない気`,
		asks:     `^なぜ, ^なんで, ^どうして, ^どこ, ^どう, ^いつ, ^誰, ^何, ^どれ, ^どの, ですか $, ますか $, でしょうか $, のですか $, んですか $, かな $, の $, したっけ $`,
		hedges:   `みたい, ようです, らしい, と思う, かも, 気がする, さっき, 昨日, しました $, ました $, 失敗する, エラーが`,
		forbids:  `しないで, ないで, ないでください, 禁止, 禁ずる, ダメ, だめ, 駄目, てはいけ, ではいけ, てはなら, ではなら, てはダメ, べきではな, べきでな, ないこと, ないように, 絶対に .. ない, 絶対 .. ない, 決して, 以内, 以下, 未満, 最大, 最小, 最低, 上限, 下限, のみ, だけにして, だけを, だけ 変|編|修|使|触, やめて, 止めて, 避けて, 避ける, 控えて, 不可, 厳禁, 変えない, 変更しない, 触らない, 使わない, 追加しない, せずに, 勝手に, なしで, いりません, 要りません, 欲しくない, ほしくない, 許可なく, 超えない, 超えては, まで $, まで にし, ずに, したくない, そのままに, 読み取り専用, 必要ありません`,
		requires: `必ず, 必須, なければなら, なければいけ, なきゃ, なくてはなら, なくてはいけ, ないといけ, ないとダメ, べき, ようにして, ようにしてください, ようお願い, こと $, ことにし, 常に, 毎回, ^いつも, いつも .. して, 今後, これから, これからは, 以降は, 今から, 次から, 統一, 守って, 忘れずに, 忘れないで, 前に .. て, 前には, 徹底, 保って, 維持, 従って, にして $, にしてください, で 答|書|返|統|説|回|話|お, を使って, を使うこと, 使ってください, じゃなくて, ではなく, じゃなく, の代わり, でお願い, にする $, 確認してから, してから, たら必ず, する時は, するときは, たびに, ごとに, サポートする必要, 必要があ, 必要です, 注意`,
		prefers:  `できれば, 出来れば, できるだけ, なるべく, ほうがい, 方がい, 方が好, ほうが好, ほうが嬉, 好み, 好き, 希望, 望まし, 嬉し, うれし, ありがた, 助かり, 優先, 理想, 可能なら, 可能であれば, 極力, たほうが, た方が, ほしい, 欲しい, いいな, 目標`,
	},
}
