// Package supervise runs plugins: programs that serve the protocol of package wire. A
// [Process] is a plugin as a [core.CondensationProvider]. Whatever the program does (not
// start, crash, hang, flood, lie about where it listens) costs it its turn, and neither
// the host nor the conversation anything.
//
// # Life of a process
//
// Nothing runs until the first call. That starts the program once, however many calls
// wait, and all conversations share it:
//
//	stopped ──call──> starting ──ready──> ready ──idle, replaced, closed──> stopped
//	                     │                  │ crashed, hung
//	                     └──> waiting <─────┘ ──five times in a minute──> broken
//
// Ready means: the file has the pinned digest, the handshake is right, a health check was
// answered, the description was given and the settings were accepted. While calls run the
// process is asked for its health; one that does not answer is killed. A call that is not
// answered by its deadline is given up, and when a process has as many of those as it may
// have calls it is replaced, because it may still be working on them.
//
// Two breakers keep a plugin that does not work from being asked: [Restart] counts
// processes that did not start or ended by themselves, [Breaker] counts calls. Their errors
// wrap [core.ErrUnavailable] and say why, and when the plugin will be tried again.
//
// # Safety
//
// The bytes that were hashed are those that run. The program sees the environment that it
// is allowed, has a private folder for its socket and temporary files, which nobody else
// may enter, a group of processes of its own, and limits. Both sides prove with TLS
// certificates of this one start that they are who they are. On Linux all of this holds;
// the files named after other systems say what is less there. What a plugin starts in a
// new session of its own (setsid) is out of reach everywhere.
package supervise
